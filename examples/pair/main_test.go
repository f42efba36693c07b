package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/examples/internal/exampletest"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	native.Main() // does not return if the engine started this process to run commands
	os.Exit(m.Run())
}

// TestPair has two agents with scripted models work on two tasks. The first work has a fault.
func TestPair(t *testing.T) {
	repo := exampletest.Repository(t)
	write := func(path string) providertest.Turn {
		return providertest.Call(providertest.Tool(path, "write", map[string]any{"path": path, "content": "new\n"}))
	}
	fault := verdict(fmt.Sprintf(`{"title":"bad","body":"it is new","priority":1,"confidence_score":0.9,
		"code_location":{"absolute_file_path":%q,"line_range":{"start":1,"end":1}}}`, filepath.Join(repo, "b.txt")))
	told := providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
		if strings.Contains(string(r.Body), "b.txt:1 bad: it is new") {
			return providertest.Say("Mended.")
		}
		return providertest.Say("I was told nothing.")
	}}
	agents := []agent{
		{"A", exampletest.Connect(t, write("b.txt"), providertest.Say("Written."), told, verdict(""))},
		{"B", exampletest.Connect(t, fault, verdict(""), write("c.txt"), providertest.Say("Documented."))},
	}
	var out strings.Builder
	if err := run(t.Context(), agents, repo, []string{"write", "document"}, &out); err != nil {
		t.Error(err)
	}
	const want = `A: Written.
B: b.txt:1 bad: it is new
A: Mended.
B: no faults
B: Documented.
A: no faults
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNeverGood checks that agents that do not agree end.
func TestNeverGood(t *testing.T) {
	repo := exampletest.Repository(t)
	exampletest.Write(t, repo, "b.txt", "new\n")
	say := providertest.Say("Done.")
	fault := verdict(fmt.Sprintf(`{"title":"bad","body":"","code_location":{"absolute_file_path":%q,"line_range":{"start":1,"end":1}}}`, filepath.Join(repo, "b.txt")))
	say.Repeat, fault.Repeat = true, true
	err := run(t.Context(), []agent{{"A", exampletest.Connect(t, say)}, {"B", exampletest.Connect(t, fault)}}, repo, []string{"write"}, t.Output())
	if err == nil || !strings.Contains(err.Error(), "still has faults after 3 rounds") {
		t.Error(err)
	}
}

// verdict is the answer of a reviewer.
func verdict(findings string) providertest.Turn {
	return providertest.Say(`{"findings":[` + findings + `],"overall_correctness":"patch is correct","overall_explanation":"","overall_confidence_score":0.9}`)
}
