package tools_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

type toolShape struct {
	Name         string       `json:"name"`
	Title        string       `json:"title"`
	InputSchema  schemaShape  `json:"inputSchema"`
	OutputSchema *schemaShape `json:"outputSchema"`
}

type schemaShape struct {
	Type                 any                    `json:"type"`
	Properties           map[string]schemaShape `json:"properties"`
	Required             []string               `json:"required"`
	Enum                 []string               `json:"enum"`
	AdditionalProperties any                    `json:"additionalProperties"`
}

// listed returns the tools that a server offers.
func listed(t *testing.T, c *servertest.Client) []toolShape {
	t.Helper()
	var list struct{ Tools []toolShape }
	must(t, json.Unmarshal([]byte(c.Ask(t, "tools/list", `{}`)), &list))
	return list.Tools
}

// TestToolsAreASuperset checks that our tools take all arguments that the tools of Codex's
// servers took, and return all that those promised. The recordings have the names, types
// and enums of their lists.
func TestToolsAreASuperset(t *testing.T) {
	files, err := filepath.Glob("testdata/tools-*.json")
	if err != nil || len(files) != 2 {
		t.Fatalf("recordings %v, %v", files, err)
	}
	var ours []toolShape
	synctest.Test(t, func(t *testing.T) {
		ours = listed(t, servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.Echo), nil), nil))
	})
	for _, file := range files {
		raw, err := os.ReadFile(file)
		must(t, err)
		var theirs struct{ Tools []toolShape }
		if err := json.Unmarshal(raw, &theirs); err != nil || len(theirs.Tools) != 2 {
			t.Fatalf("%s: %d tools, %v", file, len(theirs.Tools), err)
		}
		for _, want := range theirs.Tools {
			at := slices.IndexFunc(ours, func(o toolShape) bool { return o.Name == want.Name })
			if at < 0 {
				t.Errorf("%s: there is no tool %s", file, want.Name)
				continue
			}
			got := ours[at]
			if got.Title != want.Title {
				t.Errorf("%s: the title of %s is %q, want %q", file, want.Name, got.Title, want.Title)
			}
			takes(t, file+": "+want.Name, want.InputSchema, got.InputSchema)
			if want.OutputSchema == nil {
				continue
			}
			if got.OutputSchema == nil {
				t.Errorf("%s: %s has no outputSchema", file, want.Name)
				continue
			}
			takes(t, file+": result of "+want.Name, *want.OutputSchema, *got.OutputSchema)
			for _, name := range want.OutputSchema.Required {
				if !slices.Contains(got.OutputSchema.Required, name) {
					t.Errorf("%s: the result of %s does not promise %s", file, want.Name, name)
				}
			}
		}
	}
	if more := ours[0].InputSchema.AdditionalProperties; more != false {
		t.Errorf("additionalProperties of codex is %v, want false", more)
	}
	if more := ours[1].InputSchema.AdditionalProperties; more != nil {
		t.Errorf("additionalProperties of codex-reply is %v: what it does not know it ignores", more)
	}
}

// takes checks that every value that fits one schema fits the other.
func takes(t *testing.T, at string, theirs, ours schemaShape) {
	t.Helper()
	if theirs.Type != ours.Type {
		t.Errorf("%s: type %v, want %v", at, ours.Type, theirs.Type)
	}
	for _, word := range theirs.Enum {
		if !slices.Contains(ours.Enum, word) {
			t.Errorf("%s: %q is missing in %q", at, word, ours.Enum)
		}
	}
	if len(theirs.Enum) == 0 && len(ours.Enum) > 0 {
		t.Errorf("%s: any value was taken, now only %q", at, ours.Enum)
	}
	for _, name := range ours.Required {
		if !slices.Contains(theirs.Required, name) {
			t.Errorf("%s: %s was not required", at, name)
		}
	}
	for name, schema := range theirs.Properties {
		own, ok := ours.Properties[name]
		if !ok {
			t.Errorf("%s: %s is missing", at, name)
			continue
		}
		takes(t, at+"/"+name, schema, own)
	}
	if theirs.AdditionalProperties == true && ours.AdditionalProperties != true {
		t.Errorf("%s: more members were taken", at)
	}
}
