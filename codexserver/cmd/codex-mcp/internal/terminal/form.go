package terminal

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// field is a field of a question's form. Questions of MCP servers have forms; approvals
// have only the fields of package elicit.
type field struct {
	name        string
	required    bool
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

// values returns the values that the field allows, nil when it allows any, and the title of one of them.
func (f *field) values(one string) (all []string, title string) {
	all = slices.Clone(f.Enum)
	if i := slices.Index(all, one); i >= 0 && i < len(f.EnumNames) {
		title = f.EnumNames[i]
	}
	for _, v := range f.OneOf {
		all = append(all, v.Const)
		if v.Const == one {
			title = v.Title
		}
	}
	return all, title
}

// form returns the fields to fill in, by their names. It returns nil for an approval, whose fields are
// those of package elicit.
func (d *dialogue) form() (all []field) {
	form := false
	for _, name := range slices.Sorted(maps.Keys(d.params.Schema.Properties)) {
		f := d.params.Schema.Properties[name]
		f.name, f.required = name, slices.Contains(d.params.Schema.Required, name)
		form = form || name != "decision" && name != "feedback"
		all = append(all, f)
	}
	if !form {
		return nil
	}
	return all
}

// offers reads what an approval offers besides once.
func (d *dialogue) offers() {
	decision := d.params.Schema.Properties["decision"]
	if words, title := decision.values(string(elicit.ApprovedForSession)); slices.Contains(words, string(elicit.ApprovedForSession)) {
		d.again = "for this session"
		if inside := ", in the sandbox"; strings.HasSuffix(title, inside) {
			d.again += inside
		}
	}
	_, always := decision.values(string(elicit.ApprovedAlways))
	d.always = Row(always)
}

// fillIn reads the fields one after another.
func (d *dialogue) fillIn() (map[string]mcptypes.ElicitValue, error) {
	content := map[string]mcptypes.ElicitValue{}
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
	if words, _ := f.values(""); len(words) > 0 {
		about = append(about, "one of "+strings.Join(words, ", "))
	} else if f.Type != "" && f.Type != "string" {
		about = append(about, "a JSON "+f.Type)
	}
	if !f.required {
		about = append(about, "Enter leaves it out")
	}
	return "  " + Row(strings.Join(about, "; ")) + ": "
}

// read converts the typed text to the field's type, and reports whether it fits.
func (f *field) read(text string) (v mcptypes.ElicitValue, ok bool) {
	words, _ := f.values("")
	switch {
	case text == "" || len(words) > 0 && !slices.Contains(words, text):
		return v, false
	case f.Type == "boolean":
		return mcptypes.ElicitBool(text == "true"), text == "true" || text == "false"
	case f.Type == "number", f.Type == "integer":
		ok = v.UnmarshalJSON([]byte(text)) == nil
		_, number := v.Number()
		return v, ok && number && (f.Type == "number" || !strings.ContainsAny(text, ".eE"))
	}
	return mcptypes.ElicitString(text), true
}
