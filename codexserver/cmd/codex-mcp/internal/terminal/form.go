package terminal

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

// fields reads the properties of a schema, in their order. It returns nil for an approval.
func fields(properties jsontext.Value, required []string) (all []field, err error) {
	if len(properties) == 0 {
		return nil, nil
	}
	if properties.Kind() != '{' {
		return nil, errors.New("properties is not an object")
	}
	form := false
	dec := jsontext.NewDecoder(strings.NewReader(string(properties)))
	_, err = dec.ReadToken()
	for err == nil && dec.PeekKind() == '"' {
		var name jsontext.Token
		if name, err = dec.ReadToken(); err == nil {
			f := field{name: name.String()}
			err = json.UnmarshalDecode(dec, &f)
			f.required = slices.Contains(required, f.name)
			form = form || f.name != "decision" && f.name != "feedback"
			all = append(all, f)
		}
	}
	if !form {
		return nil, err
	}
	return all, err
}

// offers reads what an approval offers besides once.
func (d *dialogue) offers() {
	var properties struct {
		Decision field `json:"decision"`
	}
	if d.form != nil || len(d.params.Schema.Properties) == 0 || json.Unmarshal(d.params.Schema.Properties, &properties) != nil {
		return
	}
	if words, title := properties.Decision.values(string(elicit.ApprovedForSession)); slices.Contains(words, string(elicit.ApprovedForSession)) {
		d.again = "for this session"
		if inside := ", in the sandbox"; strings.HasSuffix(title, inside) {
			d.again += inside
		}
	}
	_, always := properties.Decision.values(string(elicit.ApprovedAlways))
	d.always = Row(always)
}

// fillIn reads the fields one after another.
func (d *dialogue) fillIn() (map[string]mcptypes.ElicitValue, error) {
	content := map[string]mcptypes.ElicitValue{}
	for _, f := range d.form {
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
