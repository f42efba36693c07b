package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	native.Main() // does not return if the engine started this process to run commands
	os.Exit(m.Run())
}

// TestPair has two agents with scripted models work on two tasks. The first work has a fault.
func TestPair(t *testing.T) {
	repo := repository(t)
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
		{"A", connect(t, write("b.txt"), providertest.Say("Written."), told, verdict(""))},
		{"B", connect(t, fault, verdict(""), write("c.txt"), providertest.Say("Documented."))},
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
	repo := repository(t)
	if err := os.WriteFile(filepath.Join(repo, "b.txt"), []byte("new\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	say := providertest.Say("Done.")
	fault := verdict(fmt.Sprintf(`{"title":"bad","body":"","code_location":{"absolute_file_path":%q,"line_range":{"start":1,"end":1}}}`, filepath.Join(repo, "b.txt")))
	say.Repeat, fault.Repeat = true, true
	err := run(t.Context(), []agent{{"A", connect(t, say)}, {"B", connect(t, fault)}}, repo, []string{"write"}, t.Output())
	if err == nil || !strings.Contains(err.Error(), "still has faults after 3 rounds") {
		t.Error(err)
	}
}

// verdict is the answer of a reviewer.
func verdict(findings string) providertest.Turn {
	return providertest.Say(`{"findings":[` + findings + `],"overall_correctness":"patch is correct","overall_explanation":"","overall_confidence_score":0.9}`)
}

func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"commit", "-q", "--allow-empty", "-m", "begin"}} {
		args = append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	return dir
}

// connect connects to a server in this process with a scripted model.
func connect(t *testing.T, turns ...providertest.Turn) *client.Client {
	t.Helper()
	model, home := providertest.New(turns...), t.TempDir()
	t.Cleanup(model.Close)
	config := fmt.Sprintf("model = \"m\"\nmodel_provider = \"p\"\n[model_providers.p]\nbase_url = %q\nwire_api = \"chat\"\n", model.BaseURL())
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	engine, err := native.New(&native.Options{CodexHome: home})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	c, err := client.Start(t.Context(), &client.Options{Server: codexserver.New(engine, &codexserver.Options{Home: home})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
