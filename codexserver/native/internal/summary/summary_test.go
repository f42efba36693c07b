package summary_test

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/summary"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// row is one line of package policy's corpus: how Codex 0.42.0 described a command.
type row struct {
	Command []string                 `json:"command"`
	Parsed  []protocol.ParsedCommand `json:"parsed"`
}

func readRows(t testing.TB) (rows []row) {
	t.Helper()
	b, err := os.ReadFile("../../../internal/policy/testdata/commands.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var r row
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

func TestAsRecorded(t *testing.T) {
	bash := func(script string) []string { return []string{"bash", "-lc", script} }
	// The recorded text of these is not what the shell would run.
	differs := [][]string{bash("echo a\\\nb"), bash("let a=1"), bash("ls\r")}
	rows := readRows(t)
	if len(rows) < 100 {
		t.Fatalf("only %d commands", len(rows))
	}
	for _, r := range rows {
		if slices.ContainsFunc(differs, func(c []string) bool { return slices.Equal(c, r.Command) }) {
			continue
		}
		if diff := cmp.Diff(r.Parsed, summary.Of(r.Command), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-recorded +got):\n%s", r.Command, diff)
		}
	}
}

// TestNotRecorded has commands that the corpus does not have.
func TestNotRecorded(t *testing.T) {
	cd := protocol.ParsedCommand{Type: "unknown", Cmd: "cd src"}
	ls := protocol.ParsedCommand{Type: "list_files", Cmd: "ls"}
	for _, test := range []struct {
		script string
		want   []protocol.ParsedCommand
	}{
		{"cd src && ls", []protocol.ParsedCommand{ls}},
		{"ls && cd src", []protocol.ParsedCommand{ls, cd}}, // which prepares nothing
		{"cd lib && ls && cd src", []protocol.ParsedCommand{ls, cd}},
	} {
		if diff := cmp.Diff(test.want, summary.Of([]string{"bash", "-lc", test.script})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.script, diff)
		}
	}
}

func FuzzOf(f *testing.F) {
	for _, r := range readRows(f) {
		if len(r.Command) == 3 {
			f.Add(r.Command[1], r.Command[2])
		}
	}
	f.Fuzz(func(t *testing.T, flag, text string) {
		for _, argv := range [][]string{{"bash", flag, text}, {flag, text}, {text}} {
			for _, part := range summary.Of(argv) {
				if !slices.Contains([]string{"read", "list_files", "search", "unknown"}, part.Type) {
					t.Errorf("%q: a part of type %q", argv, part.Type)
				}
			}
		}
	})
}
