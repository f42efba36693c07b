package terminal

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// field is a field of a question's form. Questions of MCP servers have forms; approvals
// have only the fields of package elicit.
type field struct {
	name     string
	required bool
	schema   fieldSchema
}

type fieldSchema struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Enum        []string `json:"enum"`
	EnumNames   []string `json:"enumNames"`
	OneOf       []struct {
		Const string `json:"const"`
		Title string `json:"title"`
	} `json:"oneOf"`
}

// title returns the title of a value, "" if it has none.
func (s *fieldSchema) title(word string) string {
	for _, one := range s.OneOf {
		if one.Const == word {
			return one.Title
		}
	}
	if i := slices.Index(s.Enum, word); i >= 0 && i < len(s.EnumNames) {
		return s.EnumNames[i]
	}
	return ""
}

// words returns the values that the field allows, nil when it allows any.
func (s *fieldSchema) words() []string {
	words := slices.Clone(s.Enum)
	for _, one := range s.OneOf {
		words = append(words, one.Const)
	}
	return words
}

// approvalFields are the fields of an approval, which the keys set.
var approvalFields = []string{"decision", "feedback"}

var errNoObject = errors.New("properties is not an object")

// fields reads the properties of a schema, in their order. It returns nil for an approval.
func fields(properties jsontext.Value, required []string) ([]field, error) {
	if len(properties) == 0 {
		return nil, nil
	}
	if properties.Kind() != '{' {
		return nil, errNoObject
	}
	var all []field
	approval := true
	dec := jsontext.NewDecoder(strings.NewReader(string(properties)))
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		f := field{name: name.String()}
		if err := json.UnmarshalDecode(dec, &f.schema); err != nil {
			return nil, err
		}
		f.required = slices.Contains(required, f.name)
		approval = approval && slices.Contains(approvalFields, f.name)
		all = append(all, f)
	}
	if approval {
		return nil, nil
	}
	return all, nil
}

// offers returns the words of an approval for the session and the title of the lasting rule that
// may be accepted, "" if there is none.
func offers(p *questionParams) (session, always string) {
	var properties struct {
		Decision fieldSchema `json:"decision"`
	}
	if len(p.Schema.Properties) == 0 || stdjson.Unmarshal(p.Schema.Properties, &properties) != nil {
		return "", ""
	}
	d := &properties.Decision
	if slices.Contains(d.words(), string(elicit.ApprovedForSession)) {
		session = "for this session"
		if inside := ", in the sandbox"; strings.HasSuffix(d.title(string(elicit.ApprovedForSession)), inside) {
			session += inside
		}
	}
	return session, elicit.OneLine(d.title(string(elicit.ApprovedAlways)), 0)
}

// fillIn reads the fields one after another.
func (p *prompt) fillIn() (done bool, out outcome) {
	content := map[string]mcptypes.ElicitValue{}
	for _, f := range p.form {
		for {
			text, out := p.line(f.ask())
			if out != answered {
				return true, out
			}
			if text == "" && !f.required {
				break
			}
			v, err := f.read(text)
			if err == nil {
				content[f.name] = v
				break
			}
			p.s.line("  ", red, err.Error())
		}
	}
	p.result(green, "✓ ", "answered")
	p.answer(mcptypes.ElicitResultActionAccept, content)
	return true, answered
}

// ask returns the text before the input.
func (f *field) ask() string {
	name := f.name
	if f.schema.Title != "" {
		name = f.schema.Title
	}
	var about []string
	if f.schema.Description != "" {
		about = append(about, f.schema.Description)
	}
	switch words := f.schema.words(); {
	case len(words) > 0:
		about = append(about, "one of "+strings.Join(words, ", "))
	case f.schema.Type == "boolean":
		about = append(about, "yes or no")
	case f.schema.Type == "number", f.schema.Type == "integer":
		about = append(about, "a number")
	}
	if !f.required {
		about = append(about, "Enter leaves it out")
	}
	if len(about) > 0 {
		name += " (" + strings.Join(about, "; ") + ")"
	}
	return unmarked(showOutput(oneLine([]byte(name)))) + ": "
}

var errNumber = errors.New("type a number")

// read converts the typed text to the field's type.
func (f *field) read(text string) (mcptypes.ElicitValue, error) {
	words := f.schema.words()
	switch {
	case len(words) > 0 && !slices.Contains(words, text):
		return mcptypes.ElicitValue{}, fmt.Errorf("type one of %s", showOutput(oneLine([]byte(strings.Join(words, ", ")))))
	case text == "":
		return mcptypes.ElicitValue{}, errors.New("this field is required")
	}
	switch f.schema.Type {
	case "boolean":
		switch strings.ToLower(text) {
		case "y", "yes", "true":
			return mcptypes.ElicitBool(true), nil
		case "n", "no", "false":
			return mcptypes.ElicitBool(false), nil
		}
		return mcptypes.ElicitValue{}, errors.New("type yes or no")
	case "integer", "number":
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil {
			return mcptypes.ElicitInt(n), nil
		}
		var v mcptypes.ElicitValue
		if f.schema.Type == "integer" || v.UnmarshalJSON([]byte(text)) != nil {
			return mcptypes.ElicitValue{}, errNumber
		}
		if _, ok := v.Number(); !ok {
			return mcptypes.ElicitValue{}, errNumber
		}
		return v, nil
	}
	return mcptypes.ElicitString(text), nil
}
