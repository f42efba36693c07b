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
	form     foreignForm
}

// Bounds of a foreign question. What is longer is cut, and the message says so; too many fields
// or options, and longer names of either, are an error.
const (
	foreignLines, foreignText     = 20, 4000 // of the message; the text in characters
	foreignFields, foreignOptions = 32, 256
	foreignName, foreignLabel     = 64, 200  // characters
	foreignRead                   = 64 << 10 // bytes of the message
)

// ServerQuestion returns the question of an MCP server with these params of elicitation/create.
// The error says why it cannot be asked: it is in another mode than a form, or the form has what
// MCP's forms do not have, or a name of a field or an option that cannot be shown as it is.
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
	err := f.form.read(mark, p.Schema)
	if err == nil {
		f.question.Schema, err = json.Marshal(f.form, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
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
	for line := range strings.FieldsFuncSeq(text,
		func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }) {
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

// read reads a schema, and replaces its texts by what is shown.
func (f *foreignForm) read(mark string, schema jsontext.Value) error {
	if schema != nil {
		if err := json.Unmarshal(schema, f); err != nil {
			return fmt.Errorf("it is none of MCP: %s", plain.OneLine(err.Error(), foreignLabel))
		}
	}
	if f.Type = cmp.Or(f.Type, "object"); f.Type != "object" || len(f.Properties) > foreignFields {
		return fmt.Errorf("it is no object with up to %d fields", foreignFields)
	}
	f.Required = slices.DeleteFunc(f.Required, func(name string) bool { return f.Properties[name] == nil })
	slices.Sort(f.Required)
	f.Required = slices.Compact(f.Required)
	for name, s := range f.Properties {
		if s == nil {
			return errors.New("a field has no schema")
		}
		err := s.clean()
		if err == nil {
			err = shownWhole(name, foreignName)
		}
		if err != nil {
			return fmt.Errorf("the field %s: %w", plain.Name(name), err)
		}
		s.Title = mark + ": " + plain.OneLine(cmp.Or(s.Title, name), foreignLabel)
		if s.Description != "" {
			s.Description = mark + ": " + plain.Quote(plain.OneLine(s.Description, plain.QuoteHead))
		}
	}
	return nil
}

// shownWhole returns an error unless a name is shown as it is, so that an answer has the party's own names.
func shownWhole(name string, most int) error {
	if plain.OneLine(name, most) != name {
		return fmt.Errorf("the name %s cannot be shown as it is", plain.Name(name))
	}
	return nil
}

// kinds are the kinds of JSON that a value of a type may be.
var kinds = map[string]string{"string": `"`, "number": "0", "integer": "0", "boolean": "tf"}

// clean checks the schema of a field, and replaces its texts by what is shown.
func (s *foreignSchema) clean() error {
	s.Type = cmp.Or(s.Type, "string")
	of := s
	switch {
	case kinds[s.Type] != "" && s.Items != nil:
		return errors.New("only a list has items")
	case s.Type == "array":
		if of = s.Items; of == nil || of.Items != nil || of.Type != "" && of.Type != "string" || s.options() != nil ||
			of.options() == nil {
			return errors.New("it is a list without options")
		}
		of.Type, of.Title, of.Description, of.Format, s.EnumNames = "string", "", "", "", nil
	case kinds[s.Type] == "":
		return fmt.Errorf("its type %s is not allowed", plain.Name(s.Type))
	}
	if !slices.Contains([]string{"email", "uri", "date", "date-time"}, s.Format) {
		s.Format = ""
	}
	options := of.options()
	if len(options) > foreignOptions || options != nil && of.Type != "string" {
		return fmt.Errorf("it is no text with up to %d options", foreignOptions)
	}
	for _, option := range options {
		if err := shownWhole(option, foreignLabel); err != nil {
			return err
		}
	}
	if len(of.EnumNames) != len(of.Enum) {
		of.EnumNames = nil
	}
	for i, name := range of.EnumNames {
		of.EnumNames[i] = plain.OneLine(name, foreignLabel)
	}
	for _, titled := range [][]foreignOption{of.OneOf, of.AnyOf} {
		for i := range titled {
			titled[i].Title = plain.OneLine(titled[i].Title, foreignLabel)
		}
	}
	return nil
}

// options returns the values that the schema allows, nil if it allows any.
func (s *foreignSchema) options() (all []string) {
	for _, o := range slices.Concat(s.OneOf, s.AnyOf) {
		all = append(all, o.Const)
	}
	return append(all, s.Enum...)
}

// fits reports whether a value is one of the schema.
func (s *foreignSchema) fits(value jsontext.Value) bool {
	if s.Items != nil {
		var all []jsontext.Value
		return json.Unmarshal(value, &all) == nil && all != nil && len(all) <= len(s.Items.options()) &&
			!slices.ContainsFunc(all, func(one jsontext.Value) bool { return !s.Items.fits(one) })
	}
	options, chosen := s.options(), ""
	return strings.ContainsRune(kinds[s.Type], rune(value.Kind())) &&
		(options == nil || json.Unmarshal(value, &chosen) == nil && slices.Contains(options, chosen))
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
	for name, schema := range f.form.Properties {
		value, given := values[name]
		if given && !schema.fits(value) {
			return declined
		}
		if given {
			content[name] = value
		}
	}
	answer, err := json.Marshal(map[string]any{"action": "accept", "content": content}, json.Deterministic(true),
		jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return declined
	}
	return answer
}
