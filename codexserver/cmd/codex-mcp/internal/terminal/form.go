package terminal

import (
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
	schema   jsontext.Value
	allows   *outputschema.Schema
}

// form reads the fields to fill in, by their names. It reads none of an approval, whose fields are those of package
// elicit, but what it offers besides once.
func (d *dialogue) form() error {
	schema, approval := &d.params.Schema, true
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		f := field{name: name, required: slices.Contains(schema.Required, name), schema: schema.Properties[name]}
		var err error
		if f.allows, err = outputschema.Compile([]byte(f.schema)); err != nil {
			return err
		}
		if name == "decision" {
			err = d.offers(f.schema)
		}
		if err != nil {
			return err
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
func (d *dialogue) offers(schema jsontext.Value) error {
	var decision struct {
		OneOf []struct {
			Const elicit.Decision `json:"const"`
			Title string          `json:"title"`
		} `json:"oneOf"`
	}
	err := json.Unmarshal(schema, &decision)
	for _, one := range decision.OneOf {
		switch one.Const {
		case elicit.ApprovedForSession:
			d.again = "for this session"
			if inside := ", in the sandbox"; strings.HasSuffix(one.Title, inside) {
				d.again += inside
			}
		case elicit.ApprovedAlways:
			d.always = Row(one.Title)
		}
	}
	return err
}

// fillIn reads the fields one after another, each as the text that was typed, or as JSON. Its schema says what it takes.
func (d *dialogue) fillIn() (map[string]any, error) {
	content := map[string]any{}
	for _, f := range d.fields {
		leave := ""
		if !f.required {
			leave = ", Enter leaves it out"
		}
		for {
			text, err := d.read("  " + Row(f.name+" "+string(f.schema)) + leave + ": ")
			if err != nil {
				return nil, err
			}
			if text == "" && !f.required {
				break
			}
			quoted, _ := jsontext.AppendQuote(nil, text) // what was read is UTF-8
			v, err := f.allows.Check(string(quoted))
			if err != nil {
				v, err = f.allows.Check(text)
			}
			if err == nil && text != "" {
				content[f.name] = v
				break
			}
			d.p.line("  ", "That does not fit.")
		}
	}
	return content, nil
}
