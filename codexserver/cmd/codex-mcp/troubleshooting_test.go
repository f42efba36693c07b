package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestTroubleshooting provokes texts of docs/troubleshooting.md: the first that an entry of the page quotes.
func TestTroubleshooting(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("CODEX_BIN", "/no/codex")
	refuses := providertest.New(providertest.Turn{Status: 401, Body: `{"error":{"message":"bad key"}}`, Repeat: true})
	defer refuses.Close()
	gone := providertest.New()
	gone.Close()
	provider := func(url string) []string {
		return []string{"-c", "model_provider=p", "-c", "model_providers.p.name=p", "-c", "model_providers.p.env_key=PROVIDER_KEY",
			"-c", "model_providers.p.request_max_retries=0", "-c", "model_providers.p.stream_max_retries=0", "-c", "model_providers.p.base_url=" + url}
	}
	t.Setenv("PROVIDER_KEY", "k")
	native := []string{"--engine", "native", "ask"}
	for _, tt := range []struct {
		text  string
		name  string // of the program
		args  []string
		file  string // config.toml
		token string // the file with the token of HTTP
		code  int
	}{
		{text: "unknown command …; to run a task, write", args: []string{"fix", "it"}, code: 2},
		{text: "… is not a flag of this program: …", args: []string{"--full-auto"}, code: 2},
		{text: "this codex is codex-mcp, with the commands", name: "codex", args: []string{"resume"}, code: 2},
		{text: "… want a duration such as", args: []string{"-c", "approvals.timeout=soon", "ask", "x"}, code: 1},
		{text: "…: unknown key", args: []string{"-c", "approvals.tiemout=1", "ask", "x"}, code: 1},
		{text: "-c …: want KEY=VALUE", args: []string{"-c", "model", "ask", "x"}, code: 1},
		{text: "--strict-config: config.toml has keys that Codex does not know: …", args: append([]string{"--strict-config"}, append(native, "x")...), file: "modle = 'm'", code: 1},
		{text: "there is no key for OpenAI: set OPENAI_API_KEY", args: append(native, "x"), code: 1},
		{text: "the model provider needs a key: …", args: []string{"--engine", "native", "doctor"}, code: 1},
		{text: "codex not found: …", args: []string{"--engine", "codex", "ask", "x"}, code: 1},
		{text: "error sending request for url (…", args: append(append(native, provider(gone.BaseURL())...), "x"), code: 1},
		{text: "set the environment variable … to a valid key", args: append(append(native, provider(refuses.BaseURL())...), "x"), code: 1},
		{text: "This MCP client cannot show approval requests; the command was not run.", args: []string{"ask", "--demo"}},
		{text: "Without a terminal no question can be asked.", args: []string{"ask", "--demo"}},
		{text: "no shared server runs", args: []string{"shared"}},
		{text: "there is no conversation to continue", args: append(native, "--resume", "last", "x"), code: 1},
		{text: "… is missing: start codex-mcp http once on this machine, or set …", args: []string{"--connect", "http://127.0.0.1:1/mcp"}, code: 1},
		{text: "… does not contain a token: remove the file and start codex-mcp http again", args: []string{"--connect", "http://127.0.0.1:1/mcp"}, token: "short", code: 1},
		{text: "address already in use", args: []string{"http", "--engine", "native", "--listen", strings.TrimSuffix(strings.TrimPrefix(refuses.BaseURL(), "http://"), "/v1")}, code: 1},
	} {
		t.Run(tt.text, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("CODEX_HOME", home)
			if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
			if tt.token != "" {
				if err := os.Mkdir(filepath.Join(home, "codex-mcp"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(home, "codex-mcp", "http-token"), []byte(tt.token), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tt.name == "" {
				tt.name = "codex-mcp"
			}
			var out bytes.Buffer
			code := run(t.Context(), tt.name, tt.args, &out, &out)
			want := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(tt.text), "…", ".*"))
			if code != tt.code || !want.Match(out.Bytes()) {
				t.Errorf("exit status %d, want %d and %q:\n%s", code, tt.code, tt.text, &out)
			}
			if !bytes.Contains(page, []byte("`"+tt.text)) {
				t.Errorf("the page has no entry %q", tt.text)
			}
		})
	}
}
