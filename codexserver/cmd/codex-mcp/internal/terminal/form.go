package terminal

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// field is a field of a question's form. Questions of MCP servers have forms; approvals
// have only the fields of package elicit.
type field struct {
	name     string
	required bool
	allows   *outputschema.Schema

	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	values
	Items values `json:"items"` // of a list
}

// values are the values that a field allows, none if it allows any.
type values struct {
	Enum  []string `json:"enum"`
	OneOf []value  `json:"oneOf"`
	AnyOf []value  `json:"anyOf"` // of items
}

type value struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

func (v *values) words() []string {
	words := slices.Clone(v.Enum)
	for _, one := range slices.Concat(v.OneOf, v.AnyOf) {
		words = append(words, one.Const)
	}
	return words
}

// form reads the fields to fill in, by their names. It reads none of an approval, whose fields are those of package
// elicit, but what it offers besides once.
func (d *dialogue) form() error {
	schema, approval := &d.params.Schema, true
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		f := field{name: name, required: slices.Contains(schema.Required, name)}
		err := json.Unmarshal(schema.Properties[name], &f)
		if err == nil {
			f.allows, err = outputschema.Compile([]byte(schema.Properties[name]))
		}
		if err != nil {
			return err
		}
		if name == "decision" {
			d.offers(&f)
		}
		approval = approval && (name == "decision" || name == "feedback")
		d.fields = append(d.fields, f)
	}
	if approval {
		d.fields = nil
	}
	return nil
}

// offers reads what an approval offers besides once.
func (d *dialogue) offers(decision *field) {
	for _, one := range decision.OneOf {
		switch elicit.Decision(one.Const) {
		case elicit.ApprovedForSession:
			d.again = "for this session"
			if inside := ", in the sandbox"; strings.HasSuffix(one.Title, inside) {
				d.again += inside
			}
		case elicit.ApprovedAlways:
			d.always = Row(one.Title)
		}
	}
}

// fillIn reads the fields one after another.
func (d *dialogue) fillIn() (map[string]any, error) {
	content := map[string]any{}
	for _, f := range d.fields {
		for {
			text, err := d.read(f.ask())
			if err != nil {
				return nil, err
			}
			if text == "" && !f.required {
				break
			}
			if v, ok := f.read(text); ok {
				content[f.name] = v
				break
			}
			d.p.line("  ", "That does not fit.")
		}
	}
	return content, nil
}

// ask returns the text before the input.
func (f *field) ask() string {
	about := []string{cmp.Or(f.Title, f.name)}
	if f.Description != "" {
		about = append(about, f.Description)
	}
	if f.Type == "array" {
		about = append(about, "any of "+strings.Join(f.Items.words(), ", ")+", between commas")
	} else if words := f.words(); len(words) > 0 {
		about = append(about, "one of "+strings.Join(words, ", "))
	} else if f.Type != "" && f.Type != "string" {
		about = append(about, "a JSON "+f.Type)
	}
	if !f.required {
		about = append(about, "Enter leaves it out")
	}
	return "  " + Row(strings.Join(about, "; ")) + ": "
}

// read returns the typed text as a value that the field allows: the text itself, as JSON, or as a list of words
// between commas.
func (f *field) read(text string) (v jsontext.Value, ok bool) {
	list := strings.Split(text, ",")
	for i, word := range list {
		list[i] = strings.TrimSpace(word)
	}
	for _, typed := range []any{text, jsontext.Value(text), list} {
		raw, err := json.Marshal(typed)
		if err == nil {
			v, err = f.allows.Check(string(raw))
		}
		if err == nil && text != "" {
			return v, true
		}
	}
	return nil, false
}
