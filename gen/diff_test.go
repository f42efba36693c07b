package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDiff prints what changed since an older schema, and writes nothing.
func TestDiff(t *testing.T) {
	tests := []struct {
		name, schema, old, new string // the older schema has old where the project's has new
		want                   string
	}{
		{"the same", projectSchema, "", "", "schema: 0\nGo API: 0\nwithout a description: 0\n"},
		{"a new value", projectSchema, "", `"accept",`, "schema: 1\n  + #/$defs/ElicitResult/properties/action/enum/* \"accept\"\n" +
			"Go API: 1\n  ~ ElicitResultAction: type string, one of cancel decline -> type string, one of accept cancel decline\n" +
			"without a description: 0\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			schema := string(readFile(t, tt.schema))
			older := filepath.Join(t.TempDir(), "older.json")
			was := strings.Replace(schema, tt.new, tt.old, 1)
			if tt.new != tt.old && was == schema {
				t.Fatalf("the schema has no %s", tt.new)
			}
			writeFile(t, older, []byte(was))
			out := t.TempDir()
			var report strings.Builder
			if err := run([]string{"-diff", older, "-schema", tt.schema, "-out", out}, &report); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, report.String()); diff != "" {
				t.Errorf("report (-want +got)\n%s", diff)
			}
			if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
				t.Errorf("%v, and a difference was written: %v", err, left)
			}
		})
	}
	for _, with := range []string{"-check", "-n", "-refresh=x.json", "-commit=x"} {
		if err := run([]string{"-diff", projectSchema, with}, new(strings.Builder)); !errors.As(err, new(usageError)) {
			t.Errorf("-diff with %s: %v, want a refusal of the command line", with, err)
		}
	}
}

// TestDiffOfChoices compares choices arm by arm. Arms with the same tag are told apart by all that they have, so that
// none hides a change of another.
func TestDiffOfChoices(t *testing.T) {
	arm := func(tag, name, kind string) string {
		return `{"type":"object","properties":{"kind":{"type":"string","enum":["` + tag + `"]},"` + name + `":{"type":"` + kind + `"}}}`
	}
	for _, tt := range []struct {
		name    string
		was, is []string
		want    []string
	}{
		{"the order", []string{arm("a", "x", "string"), arm("b", "y", "string")}, []string{arm("b", "y", "string"), arm("a", "x", "string")}, nil},
		{"an arm of its own", []string{arm("a", "x", "string"), arm("b", "y", "string")}, []string{arm("a", "x", "integer"), arm("b", "y", "string")},
			[]string{`~ #/anyOf/a/properties/x/type "string" -> "integer"`}},
		{"the first of two", []string{arm("a", "x", "string"), arm("a", "y", "string")}, []string{arm("a", "x", "integer"), arm("a", "y", "string")},
			[]string{`~ #/anyOf/*/properties/x/type "string" -> "integer"`}},
		{"the second of two", []string{arm("a", "x", "string"), arm("a", "y", "string")}, []string{arm("a", "x", "string"), arm("a", "y", "integer")},
			[]string{`~ #/anyOf/*/properties/y/type "string" -> "integer"`}},
	} {
		choice := func(arms []string) any { return parse(`{"anyOf":[` + strings.Join(arms, ",") + `]}`) }
		if diff := cmp.Diff(tt.want, diffSchemas(choice(tt.was), choice(tt.is))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

// parse returns the value of a JSON text.
func parse(text string) (v any) {
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(err)
	}
	return v
}
