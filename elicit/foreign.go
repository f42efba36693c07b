package elicit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A Foreign is a question of another party: an MCP server that this program uses, or the model.
// It asks for information, and is never an approval. It is built from the members that its
// party's question needs, so nothing that marks a question of this program can be in it. Each
// line of the message, and each field, names who asks.
type Foreign struct {
	message string
	form    foreignForm
	fields  []*foreignField // sorted
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
func ServerQuestion(server string, params json.RawMessage) (*Foreign, error) {
	mark := ShowName(server)
	return newForeign("The MCP server "+mark+" asks:", mark, params)
}

// ModelQuestion is [ServerQuestion] for a question of the model.
func ModelQuestion(params json.RawMessage) (*Foreign, error) {
	return newForeign("The model asks:", "the model", params)
}

func newForeign(asks, mark string, params json.RawMessage) (*Foreign, error) {
	var p struct {
		Mode    *string        `json:"mode"`
		Message string         `json:"message"`
		Schema  jsontext.Value `json:"requestedSchema"`
	}
	if err := unmarshal(params, &p); err != nil {
		return nil, fmt.Errorf("its question cannot be read: %s", OneLine(err.Error(), foreignLabel))
	}
	if p.Mode != nil && *p.Mode != "form" {
		return nil, fmt.Errorf("the mode %s of its question is not a form", ShowName(*p.Mode))
	}
	f := &Foreign{message: foreignMessage(asks, mark, p.Message)}
	if err := f.build(mark, p.Schema); err != nil {
		return nil, fmt.Errorf("the form of its question: %w", err)
	}
	return f, nil
}

// ShowName returns a name that another party chose, of an MCP server or of its tool, in quotes on
// one line.
func ShowName(name string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
	if len(name) <= foreignName && strings.Trim(name, plain) == "" {
		return `"` + name + `"`
	}
	return showQuote(OneLine(name, foreignName))
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
			left -= min(utf8.RuneCountInString(line), quoteHead+quoteTail)
			lines = append(lines, mark+": "+showQuote(line))
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("%s: (%s more lines are not shown)", mark, thousands(more)))
	}
	if unread > 0 {
		lines = append(lines, fmt.Sprintf("%s: (%s more bytes are not shown)", mark, thousands(unread)))
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
	kind        string // the type of its value, of an item for a list
	list        bool
	options     map[string]string // the values by how they are shown; nil if any is allowed
}

// build reads a schema into the form.
func (f *Foreign) build(mark string, schema jsontext.Value) error {
	f.form = foreignForm{Type: "object", Properties: map[string]*foreignSchema{}}
	if schema == nil || schema.Kind() == 'n' {
		return nil
	}
	var raw struct {
		Type       string                    `json:"type"`
		Properties map[string]*foreignSchema `json:"properties"`
		Required   []string                  `json:"required"`
	}
	if err := unmarshal(schema, &raw); err != nil {
		return fmt.Errorf("it is none of MCP: %s", OneLine(err.Error(), foreignLabel))
	}
	if raw.Type != "object" && raw.Type != "" || len(raw.Properties) > foreignFields {
		return fmt.Errorf("it is no object with up to %d fields", foreignFields)
	}
	for name, s := range raw.Properties {
		if s == nil {
			return errors.New("a field has no schema")
		}
		field := &foreignField{shown: OneLine(name, foreignName), name: name}
		if err := s.clean(field); err != nil {
			return fmt.Errorf("the field %s: %w", ShowName(name), err)
		}
		if _, taken := f.form.Properties[field.shown]; taken {
			return errors.New("two fields look alike")
		}
		title := s.Title
		if title == "" {
			title = name
		}
		s.Title = mark + ": " + OneLine(title, foreignLabel)
		if s.Description != "" {
			s.Description = mark + ": " + showQuote(OneLine(s.Description, quoteHead))
		}
		f.form.Properties[field.shown] = s
		f.fields = append(f.fields, field)
		if slices.Contains(raw.Required, name) {
			f.form.Required = append(f.form.Required, field.shown)
		}
	}
	slices.Sort(f.form.Required)
	slices.SortFunc(f.fields, func(a, b *foreignField) int { return strings.Compare(a.shown, b.shown) })
	return nil
}

// clean checks the schema of a field, replaces its texts by what is shown, and sets the field's
// kind and options.
func (s *foreignSchema) clean(f *foreignField) error {
	if s.Type == "" {
		s.Type = "string"
	}
	of := s
	switch s.Type {
	case "string", "number", "integer", "boolean":
		if s.Items != nil {
			return errors.New("only a list has items")
		}
	case "array":
		if of = s.Items; of == nil || of.Items != nil || of.Type != "" && of.Type != "string" || s.Enum != nil || s.OneOf != nil {
			return errors.New("it is a list without options")
		}
		of.Type, of.Title, of.Description, of.Format, f.list = "string", "", "", "", true
	default:
		return fmt.Errorf("its type %s is not allowed", ShowName(s.Type))
	}
	if !slices.Contains([]string{"email", "uri", "date", "date-time"}, s.Format) {
		s.Format = ""
	}
	f.kind = of.Type
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
		shown := OneLine(*value, foreignLabel)
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
		s.EnumNames[i] = OneLine(s.EnumNames[i], foreignLabel)
	}
	for _, options := range [][]foreignOption{s.OneOf, s.AnyOf} {
		for i := range options {
			if err := add(&options[i].Const); err != nil {
				return err
			}
			options[i].Title = OneLine(options[i].Title, foreignLabel)
		}
	}
	return nil
}

// Params returns the params of the elicitation/create request that asks f of that client.
func (f *Foreign) Params(client Client) (json.RawMessage, error) {
	if f.form.Properties == nil {
		return nil, errors.New("elicit: a Foreign of no party")
	}
	params := map[string]any{"message": f.message, "requestedSchema": &f.form}
	if client.ProtocolVersion >= versionModes {
		params["mode"] = "form"
	}
	return marshal(params)
}

// InputRequest returns f as one of the inputRequests of a result, as [Question.InputRequest] does.
func (f *Foreign) InputRequest(client Client) (json.RawMessage, error) {
	params, err := f.Params(client)
	if err != nil {
		return nil, err
	}
	return marshal(map[string]any{"method": method, "params": jsontext.Value(params)})
}

var foreignDeclined = json.RawMessage(`{"action":"decline"}`)

// Read returns the result of elicitation/create for the party that asks: the client's action, and
// the values of the form's fields. A result that does not fit the form declines.
func (f *Foreign) Read(result json.RawMessage) json.RawMessage {
	members, err := object(jsontext.Value(result))
	if err != nil {
		return foreignDeclined
	}
	switch action, _ := text(members["action"]); action {
	case "cancel":
		return json.RawMessage(`{"action":"cancel"}`)
	case "accept":
	default:
		return foreignDeclined
	}
	content := map[string]any{}
	if given := members["content"]; given != nil && given.Kind() != 'n' {
		values, err := object(given)
		if err != nil {
			return foreignDeclined
		}
		for _, field := range f.fields {
			if value, ok := values[field.shown]; ok {
				if content[field.name], err = field.read(value); err != nil {
					return foreignDeclined
				}
			}
		}
	}
	answer, err := marshal(map[string]any{"action": "accept", "content": content})
	if err != nil {
		return foreignDeclined
	}
	return answer
}

var errForeignValue = errors.New("elicit: the value does not fit the form")

// read returns the value of a field as its party knows it.
func (f *foreignField) read(value jsontext.Value) (any, error) {
	if f.list {
		var all []jsontext.Value
		if unmarshal(value, &all) != nil || all == nil || len(all) > len(f.options) {
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
	return f.one(value)
}

func (f *foreignField) one(value jsontext.Value) (any, error) {
	kinds := map[string]string{"string": `"`, "number": "0", "integer": "0", "boolean": "tf"}
	if !strings.ContainsRune(kinds[f.kind], rune(value.Kind())) {
		return nil, errForeignValue
	}
	if f.options == nil {
		return value, nil
	}
	shown, _ := text(value)
	chosen, ok := f.options[shown]
	if !ok {
		return nil, errForeignValue
	}
	return chosen, nil
}

// Forward asks a question of another party, and returns the result for it. It counts among the
// open questions as those of Ask do. The error is that of the [Caller], or why there is no answer.
func (a *Asker) Forward(ctx context.Context, f *Foreign) (json.RawMessage, error) {
	if !a.can {
		return nil, ErrUnsupported
	}
	params, err := f.Params(a.client)
	if err != nil {
		return nil, err
	}
	if err := a.open.Acquire(ctx); err != nil {
		return nil, err
	}
	defer a.open.Release()
	ctx, cancel := a.options.WithTimeout(ctx)
	defer cancel()
	var result json.RawMessage
	if err := a.caller.Call(ctx, method, params, &result); err != nil {
		return nil, err
	}
	return f.Read(result), nil
}
