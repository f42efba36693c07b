package approval

import (
	"cmp"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Foreign is a question of another party: an MCP server that this program uses, or the model.
// It asks for information, and is never an approval. It is built from the members that its
// party's question needs, so nothing that marks a question of this program can be in it. Each
// line of the message, and each field, names who asks.
type Foreign struct {
	question elicit.Question
	fields   []*foreignField // sorted
}

// Bounds of a foreign question. What is longer is cut, and the message says so; too many fields
// or options are an error.
const (
	foreignLines, foreignText     = 20, 4000 // of the message; the text in characters
	foreignFields, foreignOptions = 32, 256
	foreignName, foreignLabel     = 64, 200  // characters
	foreignRead                   = 64 << 10 // bytes of the message
)

// ServerQuestion returns the question of an MCP server with these params of elicitation/create.
// The error says why it cannot be asked: it is in another mode than a form, or the form has what
// MCP's forms do not have.
func ServerQuestion(server string, params stdjson.RawMessage) (*Foreign, error) {
	mark := plain.Name(server)
	return newForeign("The MCP server "+mark+" asks:", mark, params)
}

// ModelQuestion is [ServerQuestion] for a question of the model.
func ModelQuestion(params stdjson.RawMessage) (*Foreign, error) {
	return newForeign("The model asks:", "the model", params)
}

func newForeign(asks, mark string, params stdjson.RawMessage) (*Foreign, error) {
	var p struct {
		Mode    *string        `json:"mode"`
		Message string         `json:"message"`
		Schema  jsontext.Value `json:"requestedSchema"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, fmt.Errorf("its question cannot be read: %s", plain.OneLine(err.Error(), foreignLabel))
	}
	if p.Mode != nil && *p.Mode != "form" {
		return nil, fmt.Errorf("the mode %s of its question is not a form", plain.Name(*p.Mode))
	}
	f := &Foreign{question: elicit.Question{Message: foreignMessage(asks, mark, p.Message)}}
	form, err := f.build(mark, p.Schema)
	if err == nil {
		f.question.Schema, err = json.Marshal(form, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	}
	if err != nil {
		return nil, fmt.Errorf("the form of its question: %w", err)
	}
	return f, nil
}

// ShowLines returns text of another party as quoted lines, each of which begins with a mark, such
// as the name of who says it. No line can look as if this program had written it. Long text is
// cut.
func ShowLines(mark, text string) []string {
	unread := max(0, len(text)-foreignRead)
	text = strings.ToValidUTF8(text[:len(text)-unread], "\uFFFD")
	var lines []string
	left, more := foreignText, 0
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }) {
		switch line = strings.TrimSpace(line); {
		case line == "":
		case len(lines) == foreignLines || left <= 0:
			more++
		default:
			left -= min(utf8.RuneCountInString(line), plain.QuoteHead+plain.QuoteTail)
			lines = append(lines, mark+": "+plain.Quote(line))
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("%s: (%s more lines are not shown)", mark, plain.Thousands(more)))
	}
	if unread > 0 {
		lines = append(lines, fmt.Sprintf("%s: (%s more bytes are not shown)", mark, plain.Thousands(unread)))
	}
	return lines
}

func foreignMessage(asks, mark, text string) string {
	lines := ShowLines(mark, text)
	if len(lines) > 0 { // the first one names the party in full
		lines[0] = asks + strings.TrimPrefix(lines[0], mark+":")
	} else {
		lines = []string{asks}
	}
	return strings.Join(lines, "\n")
}

// foreignForm is the requestedSchema: what MCP allows in one, but no defaults, because some
// clients submit them without asking.
type foreignForm struct {
	Type       string                    `json:"type"`
	Properties map[string]*foreignSchema `json:"properties"`
	Required   []string                  `json:"required,omitempty"`
}

type foreignSchema struct {
	Type        string          `json:"type"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Format      string          `json:"format,omitempty"`
	MinLength   *float64        `json:"minLength,omitempty"`
	MaxLength   *float64        `json:"maxLength,omitempty"`
	Minimum     *float64        `json:"minimum,omitempty"`
	Maximum     *float64        `json:"maximum,omitempty"`
	MinItems    *float64        `json:"minItems,omitempty"`
	MaxItems    *float64        `json:"maxItems,omitempty"`
	Enum        []string        `json:"enum,omitempty"`
	EnumNames   []string        `json:"enumNames,omitempty"`
	OneOf       []foreignOption `json:"oneOf,omitempty"`
	AnyOf       []foreignOption `json:"anyOf,omitempty"` // of items
	Items       *foreignSchema  `json:"items,omitempty"`
}

type foreignOption struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// foreignField is a field as it is shown, and as its party knows it.
type foreignField struct {
	shown, name string
	kinds       string // those of JSON that its value may be, or an item of a list
	list        bool
	options     map[string]string // the values by how they are shown; nil if any is allowed
}

// build reads a schema into the form that is asked.
func (f *Foreign) build(mark string, schema jsontext.Value) (*foreignForm, error) {
	form := &foreignForm{Type: "object", Properties: map[string]*foreignSchema{}}
	if schema == nil || schema.Kind() == 'n' {
		return form, nil
	}
	var raw foreignForm
	if err := json.Unmarshal(schema, &raw); err != nil {
		return nil, fmt.Errorf("it is none of MCP: %s", plain.OneLine(err.Error(), foreignLabel))
	}
	if raw.Type != "object" && raw.Type != "" || len(raw.Properties) > foreignFields {
		return nil, fmt.Errorf("it is no object with up to %d fields", foreignFields)
	}
	for name, s := range raw.Properties {
		if s == nil {
			return nil, errors.New("a field has no schema")
		}
		field := &foreignField{shown: plain.OneLine(name, foreignName), name: name}
		if err := s.clean(field); err != nil {
			return nil, fmt.Errorf("the field %s: %w", plain.Name(name), err)
		}
		if _, taken := form.Properties[field.shown]; taken {
			return nil, errors.New("two fields look alike")
		}
		s.Title = mark + ": " + plain.OneLine(cmp.Or(s.Title, name), foreignLabel)
		if s.Description != "" {
			s.Description = mark + ": " + plain.Quote(plain.OneLine(s.Description, plain.QuoteHead))
		}
		form.Properties[field.shown] = s
		f.fields = append(f.fields, field)
		if slices.Contains(raw.Required, name) {
			form.Required = append(form.Required, field.shown)
		}
	}
	slices.Sort(form.Required)
	slices.SortFunc(f.fields, func(a, b *foreignField) int { return strings.Compare(a.shown, b.shown) })
	return form, nil
}

// kinds are the kinds of JSON that a value of a type may be.
var kinds = map[string]string{"string": `"`, "number": "0", "integer": "0", "boolean": "tf"}

// clean checks the schema of a field, replaces its texts by what is shown, and sets the field's
// kinds and options.
func (s *foreignSchema) clean(f *foreignField) error {
	s.Type = cmp.Or(s.Type, "string")
	of := s
	switch {
	case kinds[s.Type] != "" && s.Items != nil:
		return errors.New("only a list has items")
	case s.Type == "array":
		if of = s.Items; of == nil || of.Items != nil || of.Type != "" && of.Type != "string" || s.Enum != nil || s.OneOf != nil {
			return errors.New("it is a list without options")
		}
		of.Type, of.Title, of.Description, of.Format, f.list = "string", "", "", "", true
	case kinds[s.Type] == "":
		return fmt.Errorf("its type %s is not allowed", plain.Name(s.Type))
	}
	if !slices.Contains([]string{"email", "uri", "date", "date-time"}, s.Format) {
		s.Format = ""
	}
	f.kinds = kinds[of.Type]
	if err := of.choices(f); err != nil {
		return err
	}
	if f.list && f.options == nil {
		return errors.New("it is a list without options")
	}
	return nil
}

// choices replaces the options by what is shown.
func (s *foreignSchema) choices(f *foreignField) error {
	if n := len(s.Enum) + len(s.OneOf) + len(s.AnyOf); n == 0 {
		s.EnumNames = nil
		return nil
	} else if n > foreignOptions || s.Type != "string" {
		return fmt.Errorf("it is no text with up to %d options", foreignOptions)
	}
	if len(s.EnumNames) != len(s.Enum) {
		s.EnumNames = nil
	}
	f.options = map[string]string{}
	add := func(value *string) error {
		shown := plain.OneLine(*value, foreignLabel)
		if _, taken := f.options[shown]; taken {
			return errors.New("two options look alike")
		}
		f.options[shown], *value = *value, shown
		return nil
	}
	for i := range s.Enum {
		if err := add(&s.Enum[i]); err != nil {
			return err
		}
	}
	for i := range s.EnumNames {
		s.EnumNames[i] = plain.OneLine(s.EnumNames[i], foreignLabel)
	}
	for _, options := range [][]foreignOption{s.OneOf, s.AnyOf} {
		for i := range options {
			if err := add(&options[i].Const); err != nil {
				return err
			}
			options[i].Title = plain.OneLine(options[i].Title, foreignLabel)
		}
	}
	return nil
}

// Question returns the question as a client is asked it. Its answer is for [Foreign.Read].
func (f *Foreign) Question() *elicit.Question { return &f.question }

// Read returns the result of elicitation/create for the party that asks: the client's action, and
// the values of the form's fields. A result that does not fit the form declines.
func (f *Foreign) Read(result stdjson.RawMessage) stdjson.RawMessage {
	declined := stdjson.RawMessage(`{"action":"decline"}`)
	var r struct {
		Action  string         `json:"action"`
		Content jsontext.Value `json:"content"`
	}
	if json.Unmarshal(result, &r) != nil {
		return declined
	}
	switch r.Action {
	case "cancel":
		return stdjson.RawMessage(`{"action":"cancel"}`)
	case "accept":
	default:
		return declined
	}
	var values map[string]jsontext.Value
	if r.Content != nil && json.Unmarshal(r.Content, &values) != nil {
		return declined
	}
	content := map[string]any{}
	for _, field := range f.fields {
		value, given := values[field.shown]
		if !given {
			continue
		}
		var err error
		if content[field.name], err = field.read(value); err != nil {
			return declined
		}
	}
	answer, err := json.Marshal(map[string]any{"action": "accept", "content": content}, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return declined
	}
	return answer
}

var errForeignValue = errors.New("elicit: the value does not fit the form")

// read returns the value of a field as its party knows it.
func (f *foreignField) read(value jsontext.Value) (any, error) {
	if !f.list {
		return f.one(value)
	}
	var all []jsontext.Value
	if json.Unmarshal(value, &all) != nil || all == nil || len(all) > len(f.options) {
		return nil, errForeignValue
	}
	values := make([]any, len(all))
	for i, one := range all {
		var err error
		if values[i], err = f.one(one); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (f *foreignField) one(value jsontext.Value) (any, error) {
	if !strings.ContainsRune(f.kinds, rune(value.Kind())) {
		return nil, errForeignValue
	}
	if f.options == nil {
		return value, nil
	}
	var shown string
	_ = json.Unmarshal(value, &shown) // its kind was checked
	if chosen, ok := f.options[shown]; ok {
		return chosen, nil
	}
	return nil, errForeignValue
}
