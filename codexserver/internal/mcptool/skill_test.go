package mcptool_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// TestSkillIsTrue compares what the pages of the skill name with the tools that the server offers:
// each name in backquotes is a tool, or an argument, a member of the result, or one of their values
// of a tool that its section names.
func TestSkillIsTrue(t *testing.T) {
	for _, tt := range []struct {
		chosen, locked []string
		sections       int
	}{
		{nil, nil, 10},
		{nil, []string{"cwd", "budget"}, 8},
		{[]string{"codex-wait"}, nil, 7},
		{[]string{}, nil, 6},
	} {
		o := &codexserver.Options{Home: t.TempDir()}
		o.Calls.Tools, o.Calls.LockedArguments = tt.chosen, tt.locked
		c := servertest.Dial(t, codexserver.New(&servertest.Engine{Turn: servertest.Echo}, o), nil)
		c.Ask(t, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
		words := toolWords(t, c)
		read := func(file string) string {
			var r struct{ Contents []struct{ Text string } }
			got := c.Ask(t, "resources/read", fmt.Sprintf(`{"uri":"skill://delegating-to-codex/%s"}`, file))
			if err := json.Unmarshal([]byte(got), &r); err != nil || len(r.Contents) != 1 {
				t.Fatal(got)
			}
			return r.Contents[0].Text
		}
		sections := strings.Split(read("SKILL.md"), "\n## ")
		if len(sections)-1 != tt.sections {
			t.Errorf("%+v: %d sections", tt, len(sections)-1)
		}
		for _, section := range append(sections, "`codex` "+read("references/results.md")) {
			known, names := map[string]bool{}, namesIn(t, section)
			for _, name := range append(names, "codex") { // a result is that of codex
				maps.Copy(known, words[name])
			}
			for _, name := range names {
				if !known[name] {
					t.Errorf("%+v: %q is neither a tool nor known to one of the section:\n%s", tt, name, section)
				}
			}
		}
	}
}

// toolWords returns the words of each tool: its name, its arguments, the members of its result, and
// their values.
func toolWords(t *testing.T, c *servertest.Client) map[string]map[string]bool {
	var list struct {
		Tools []struct {
			Name                      string
			InputSchema, OutputSchema any
		}
	}
	if err := json.Unmarshal([]byte(c.Ask(t, "tools/list", `{}`)), &list); err != nil || len(list.Tools) == 0 {
		t.Fatal(list, err)
	}
	words := map[string]map[string]bool{}
	for _, tool := range list.Tools {
		own := map[string]bool{tool.Name: true}
		collect(tool.InputSchema, own)
		collect(tool.OutputSchema, own)
		words[tool.Name] = own
	}
	for name := range words {
		if name != "codex" && name != "codex-reply" && !slices.Contains(config.Choosable, name) {
			t.Errorf("unknown tool %s", name)
		}
	}
	return words
}

// collect adds the names of the properties of a schema, the texts of its enums, and the words before
// its descriptions' colons and commas, which name members of members.
func collect(schema any, to map[string]bool) {
	switch s := schema.(type) {
	case []any:
		for _, v := range s {
			collect(v, to)
		}
	case map[string]any:
		for key, v := range s {
			switch list := v.(type) {
			case []any:
				for _, e := range list {
					if text, ok := e.(string); ok && key == "enum" {
						to[text] = true
					}
				}
			case map[string]any:
				for name := range list {
					if key == "properties" {
						to[name] = true
					}
				}
			case string:
				for word := range strings.FieldsFuncSeq(list, func(r rune) bool { return strings.ContainsRune(" ,;:.", r) }) {
					if key == "description" && strings.ToLower(word) != word { // outsideDiff
						to[word] = true
					}
				}
			}
			collect(v, to)
		}
	}
}

// namesIn returns what stands in backquotes. Of JSON it returns the names of members.
func namesIn(t *testing.T, text string) (names []string) {
	for i, part := range strings.Split(text, "`") {
		switch {
		case i%2 == 0:
		case strings.HasPrefix(part, "{"):
			m := map[string]any{}
			if err := json.Unmarshal([]byte(part), &m); err != nil {
				t.Errorf("%s: %v", part, err)
			}
			names = append(names, slices.Collect(maps.Keys(m))...)
		default:
			names = append(names, part)
		}
	}
	return names
}
