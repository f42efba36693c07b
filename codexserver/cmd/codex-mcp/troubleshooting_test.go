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

// provoked names the test that provokes a text of docs/troubleshooting.md, and what it compares.
var provoked = map[string][2]string{
	"is an MCP server: it waits for a client's JSON-RPC messages":             {"troubleshooting_linux_test.go", "is an MCP server: it waits for a client's JSON-RPC messages"},
	"… lies in a folder that commands can write":                              {"../../appserver/find_test.go", "lies in a folder that commands can write"},
	"codex … is too old: … or newer is needed":                                {"../../appserver/process_test.go", "is too old: "},
	"not signed in to the model provider, or it refused the credentials: run": {"../../appserver/failure_test.go", "not signed in to the model provider, or it refused the credentials: run"},
	"No answer within … s, so the command was not run.":                       {"ask_test.go", "No answer within 1 s, so the command was not run."},
	"there is no sandbox on this system":                                      {"../../native/internal/tool/matrix_test.go", "there is no sandbox on this system"},
	"the kernel has no Landlock, or it is switched off":                       {"troubleshooting_linux_test.go", "the kernel has no Landlock, or it is switched off"},
	"namespaces: …":                        {"troubleshooting_linux_test.go", "namespaces: "},
	"Still running: …":                     {"../../internal/mcp/patience_test.go", "Still running: "},
	"the server ended while this task ran": {"oldstate_unix_test.go", "the server ended while this task ran"},
	"there is no room to write to …, so nothing was started: …":                          {"disk_linux_test.go", "there is no room to write to"},
	"another Codex has this conversation open: close it there first, or continue a copy": {"daemon_real_unix_test.go", "another Codex has this conversation open"},
	"argument /cwd: … does not exist":                                                    {"../../native/native_test.go", "argument /cwd: "},
	"argument /… is locked: the server's own configuration decides":                      {"../../internal/mcptool/table_test.go", " is locked: the server's own configuration decides"},
	"a call may not set …":                                                               {"../../internal/mcptool/call_config_test.go", "a call may not set"},
	"this process serves its client itself: it cannot share a server":                    {"share_linux_test.go", "this process serves its client itself: it cannot share a server"},
	"… shared servers run, none for these flags and this environment":                    {"share_linux_test.go", "shared servers run, none for these flags and this environment"},
}

// TestTroubleshooting provokes the texts of docs/troubleshooting.md that no other test provokes. A text is
// the first that an entry of the page quotes.
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
	seen := map[string]bool{}
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
		seen[tt.text] = true
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
	entries := regexp.MustCompile("(?m)^- (?:\\*\\*)?`([^`]*)`").FindAllSubmatch(page, -1)
	for _, entry := range entries {
		text := string(entry[1])
		place, ok := provoked[text]
		switch {
		case seen[text]:
		case !ok:
			t.Errorf("no test provokes %q", text)
		default:
			if test, err := os.ReadFile(place[0]); err != nil || !strings.Contains(string(test), place[1]) {
				t.Errorf("%s does not compare %q: %v", place[0], place[1], err)
			}
			delete(provoked, text)
		}
	}
	for text := range provoked {
		t.Errorf("the page has no entry %q", text)
	}
	if len(entries) < 30 {
		t.Errorf("only %d entries found: the search is broken", len(entries))
	}
}
