package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestNewcomer plays the first ten minutes of a newcomer with a fresh program and an empty home: the demo, for which nobody is
// there to ask, doctor without a key, with a wrong one and without a network, and a task. The step readme installs the program.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	f, tmp := newFolders(t), t.TempDir()
	model := providertest.New(providertest.Turn{Text: []string{"Hello."}, Repeat: true})
	t.Cleanup(model.Close)
	at := must.Get(url.Parse(strings.TrimSuffix(model.BaseURL(), "/v1")))(t)
	through := httputil.NewSingleHostReverseProxy(at)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good-key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		through.ServeHTTP(w, r)
	}))
	t.Cleanup(provider.Close)
	const table = "model = \"m\"\nmodel_provider = \"p\"\n[model_providers.p]\nbase_url = %q\nenv_key = \"P_KEY\"\nwire_api = \"chat\"\n"
	config := fmt.Sprintf(table, provider.URL+"/v1")
	for _, step := range []struct {
		config, key, words string
		code               int
		want               []string
	}{
		{"", "", "ask --demo", 0, []string{"codex-mcp: demo: ", "There is no terminal to ask on", "note: not applied: ", "note: not run: mkdir greetings (", "note: not run: rm hello.txt (", "This was a demo", "--ask-for-approval", "codex-mcp.toml", "--approvals page", "Next: codex-mcp doctor", "README.md says how to install codex-mcp."}},
		{"", "", "doctor", 1, []string{"no task can run", "OPENAI_API_KEY"}},
		{"", "", "ask hello", 1, []string{"there is no key for OpenAI: set OPENAI_API_KEY"}},
		{config, "", "doctor", 1, []string{"the model provider needs a key: set P_KEY"}},
		{config, "bad-key", "doctor", 1, []string{"the provider refuses the key (401 Unauthorized"}},
		{fmt.Sprintf(table, "http://model.invalid/v1"), "good-key", "doctor", 1, []string{"the name model.invalid cannot be resolved: there is no network"}},
		{config, "good-key", "doctor", 0, []string{"tasks can run"}},
		{config, "good-key", "ask hello", 0, []string{"\nHello.\n", "continue with: codex-mcp ask --resume "}},
		{config, "good-key", "ask", 0, []string{"\nHello.\n"}}, // with a task on standard input
		{config, "good-key", "ask --json hello", 0, []string{`{"type":"session_configured",`, `,"text":"Hello.","isError":false}`}},
	} {
		if err := os.Remove(filepath.Join(f.home, "config.toml")); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if step.config != "" {
			writeConfig(t, f.home, step.config)
		}
		cmd := exec.CommandContext(t.Context(), built(t), strings.Fields(step.words)...)
		cmd.Stdin = strings.NewReader("why?\n")
		cmd.Dir, cmd.Env = f.cwd, []string{"PATH=/usr/bin:/bin", "HOME=" + f.user, "CODEX_HOME=" + f.home, "CODEX_BIN=/no/codex", "TMPDIR=" + tmp, "P_KEY=" + step.key}
		out, _ := cmd.CombinedOutput()
		for _, want := range step.want {
			if cmd.ProcessState.ExitCode() != step.code || !strings.Contains(string(out), want) || strings.Contains(string(out), "-key\"") || strings.Contains(string(out), "\x1b") {
				t.Errorf("codex-mcp %s: %v, no %q in\n%s", step.words, cmd.ProcessState, want, out)
			}
		}
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("codex-mcp %s leaves %v, %v", step.words, left, err)
		}
	}
}
