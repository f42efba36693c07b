package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

func TestDoctor(t *testing.T) {
	model := providertest.New()
	defer model.Close()
	local := fmt.Sprintf("model = \"m\"\nmodel_provider = \"local\"\n[model_providers.local]\nname = \"local\"\nbase_url = %q\n", model.BaseURL())
	for _, tt := range []struct {
		name, config string
		code         int
		want         string // in the screen
		problem      string // in the JSON
	}{
		{"fine", local, 0, "turns can run", ""},
		{"no key", local + "env_key = \"CODEXMCP_TEST_NO_SUCH_KEY\"\n", 1, "missing: set CODEXMCP_TEST_NO_SUCH_KEY", "missing: set CODEXMCP_TEST_NO_SUCH_KEY"},
		{"nobody answers", strings.Replace(local, model.BaseURL(), "http://127.0.0.1:1/v1", 1), 1, "connection refused", "connection refused"},
		{"broken file", "model = \n", 1, "config.toml", "config.toml"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("CODEX_HOME", home)
			if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(tt.config), 0o600); err != nil {
				t.Fatal(err)
			}
			var screen, data, stderr bytes.Buffer
			if code := run(t.Context(), []string{"-engine", "native", "doctor"}, &screen, &stderr); code != tt.code {
				t.Errorf("exit status %d, want %d", code, tt.code)
			}
			if !strings.Contains(screen.String(), tt.want) {
				t.Errorf("the screen lacks %q:\n%s", tt.want, &screen)
			}
			if code := run(t.Context(), []string{"doctor", "-json", "-engine", "native"}, &data, &stderr); code != tt.code {
				t.Errorf("exit status %d, want %d", code, tt.code)
			}
			var d diagnosis
			if err := json.Unmarshal(data.Bytes(), &d); err != nil {
				t.Fatalf("%v:\n%s", err, &data)
			}
			if (d.Problem == "") != (tt.problem == "") || !strings.Contains(d.Problem, tt.problem) {
				t.Errorf("problem %q, want %q", d.Problem, tt.problem)
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	t.Setenv("CODEX_HOME", t.TempDir())
	for _, tt := range []struct {
		args string
		code int
		want string // on stderr or stdout
	}{
		{"-version", 0, "codex-mcp"},
		{"-nosuch", 2, "nosuch"},
		{"serve", 2, "unknown command"},
		{"mcp server", 2, "unknown command"},
		{"-engine other", 2, "want auto, codex or native"},
		{"-c novalue", 1, "novalue"},
		{"mcp-server -c approvals.timeout=soon", 1, "approvals.timeout"},
		{"-c approvals.on_error=approve mcp serve", 1, "on_error"},
		{"-log loud", 2, "loud"},
		{"-help", 0, "usage"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(tt.args), &stdout, &stderr)
		if code != tt.code || !strings.Contains(stdout.String()+stderr.String(), tt.want) {
			t.Errorf("%s: exit status %d, want %d and %q:\n%s%s", tt.args, code, tt.code, tt.want, &stdout, &stderr)
		}
		if tt.code == 1 && stdout.Len() > 0 {
			t.Errorf("%s: stdout holds %q", tt.args, &stdout)
		}
	}
}
