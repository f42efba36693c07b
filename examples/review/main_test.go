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

// TestReview reviews a branch of a repository, with a scripted model.
func TestReview(t *testing.T) {
	repo := repository(t)
	finding := func(file string, line int) string {
		return fmt.Sprintf(`{"title":"division by @everyone","body":"b may be 0.\n`+"````"+`\n![x](https://example.com)","priority":1,"confidence_score":0.9,
			"code_location":{"absolute_file_path":%q,"line_range":{"start":%d,"end":%d}}}`, filepath.Join(repo, file), line, line)
	}
	model := providertest.New(providertest.Say(`{"findings":[` + finding("a.txt", 2) + "," + finding("elsewhere.txt", 2) + `],
		"overall_correctness":"patch is incorrect","overall_explanation":"One fault.","overall_confidence_score":0.9}`))
	defer model.Close()
	var out strings.Builder
	if err := run(t.Context(), connect(t, model.BaseURL()), repo, "main", &out); err != nil {
		t.Fatal(err)
	}
	want := "A model reviewed this. Check what it says before you act on it.\n\n`````text\n" +
		"P1 a.txt:2 division by @everyone\n    b may be 0.\n    ````\n    ![x](https://example.com)\nOne fault.\n`````\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFailedReview checks that a review without a result leaves no comment.
func TestFailedReview(t *testing.T) {
	model := providertest.New(providertest.Say("It looks fine."))
	defer model.Close()
	var out strings.Builder
	if err := run(t.Context(), connect(t, model.BaseURL()), repository(t), "main", &out); err == nil || out.Len() > 0 {
		t.Errorf("error %v, comment %q", err, out.String())
	}
}

func TestLongComment(t *testing.T) {
	text := comment(&client.Result{Verdict: &client.Verdict{Explanation: strings.Repeat("é", maxComment)}})
	if len(text) > maxComment+200 || !strings.HasSuffix(text, "é\n```\nThe review is longer.\n") {
		t.Errorf("%d bytes, the end is %q", len(text), text[len(text)-50:])
	}
}

// TestWorkflow checks review.yml.
func TestWorkflow(t *testing.T) {
	if out, err := exec.Command("go", "tool", "actionlint", "-shellcheck=", "-pyflakes=", "review.yml").CombinedOutput(); err != nil {
		t.Errorf("actionlint: %v\n%s", err, out)
	}
}

// repository makes a repository whose branch topic adds a line to a.txt.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		args = append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	for i, text := range []string{"one\n", "one\ntwo\n"} {
		git([][]string{{"init", "-q", "-b", "main"}, {"checkout", "-q", "-b", "topic"}}[i]...)
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", "-A")
		git("commit", "-qm", "change")
	}
	return dir
}

// connect connects to a server in this process whose model is at the address.
func connect(t *testing.T, baseURL string) *client.Client {
	t.Helper()
	home := t.TempDir()
	config := fmt.Sprintf("model = \"m\"\nmodel_provider = \"p\"\n[model_providers.p]\nbase_url = %q\nwire_api = \"chat\"\n", baseURL)
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
