package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDiff prints what changed since an older schema, of the Model Context Protocol and of the
// app-server, and writes nothing.
func TestDiff(t *testing.T) {
	const apptypes = "../codexserver/appserver/apptypes/"
	tests := []struct {
		name, schema, old, new string // the older schema has old where the project's has new
		args                   []string
		want                   string
	}{
		{"the same", projectSchema, "", "", nil, "schema: 0\nGo API: 0\nwithout a description: 0\n"},
		{"a new value", projectSchema, "", `"accept",`, nil, "schema: 1\n  + #/$defs/ElicitResult/properties/action/enum/* \"accept\"\n" +
			"Go API: 1\n  ~ ElicitResultAction: type string, one of cancel decline -> type string, one of accept cancel decline\n" +
			"without a description: 0\n"},
		{"a member of the app-server is gone", apptypes + "schema.json", `"gitInfo":true,"gitOld":`, `"gitInfo":`, []string{"-uses", apptypes + "uses.json"},
			"schema: 1\n  - #/$defs/Thread/properties/gitOld true\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			schema := string(readFile(t, tt.schema))
			if strings.HasPrefix(tt.old, `"gitInfo"`) {
				schema = compact(parse(schema))
			}
			older := filepath.Join(t.TempDir(), "older.json")
			was := strings.Replace(schema, tt.new, tt.old, 1)
			if tt.new != tt.old && was == schema {
				t.Fatalf("the schema has no %s", tt.new)
			}
			writeFile(t, older, []byte(was))
			out := t.TempDir()
			var report strings.Builder
			if err := run(append(tt.args, "-diff", older, "-schema", tt.schema, "-out", out), &report); err != nil {
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
	for _, with := range []string{"-check", "-n", "-refresh=x.json", "-codex=codex", "-commit=x"} {
		if err := run([]string{"-diff", projectSchema, with}, new(strings.Builder)); !errors.As(err, new(usageError)) {
			t.Errorf("-diff with %s: %v, want a refusal of the command line", with, err)
		}
	}
}
