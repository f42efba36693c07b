//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestDoctorPromises has doctor look at configurations of which something does not hold: it ends with 1, and says what and why.
// Where no task can run, ask ends with 3 and says the same.
func TestDoctorPromises(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":[{"id":"m","meta":{"n_ctx":8192}}]}`)
	}))
	t.Cleanup(model.Close)
	file := func(name ...string) func(t *testing.T, f folders) {
		return func(t *testing.T, f folders) {
			write(t, filepath.Join(append([]string{f.home}, name...)...), "no folder")
		}
	}
	for name, tt := range map[string]struct {
		codex, ours string // config.toml, codex-mcp.toml
		args        string
		plant       func(t *testing.T, f folders)
		want        string // "" if all holds
		stops       bool
	}{
		"nothing":                      {},
		"a window that the server has": {codex: "model_context_window = 8192"},
		"a server that is off":         {codex: "[mcp_servers.docs]\ncommand = \"nosuch\"\nenabled = false"},

		"no helper":                 {ours: `sandbox.helper = ["nosuch"]`, want: "commands       no sandbox works, so you are asked about every command: no sandbox on this system: the helper:"},
		"a log that commands write": {ours: `approvals.log = "$CWD/a.log"`, want: "approvals.log: commands can write in ", stops: true},
		"a log in the folder":       {ours: `approvals.log = "rel.log"`, want: "approvals.log: commands can write in ", stops: true},
		"no instructions":           {codex: `model_instructions_file = "/no/such.md"`, want: "model_instructions_file: ", stops: true},
		"no provider to go on":      {ours: `failover.to = [{provider = "none", model = "x"}]`, want: `failover.to.0: model "x" of provider "none": it is not in model_providers`},
		"no notify program":         {ours: `notify.command = ["nosuch"]`, want: "notify.command: it cannot be started: "},
		"no MCP server":             {codex: "[mcp_servers.docs]\ncommand = \"nosuch\"", want: "mcp_servers.docs: "},
		"a larger window":           {codex: "model_context_window = 65536", want: "model_context_window: 65536, and the server takes 8192 tokens"},

		"no notify program of Codex's":            {codex: `notify = ["nosuch"]`, want: "notify: it cannot be started: "},
		"an MCP server that ends":                 {codex: "[mcp_servers.docs]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"exit 3\"]", args: "--start", want: `the MCP server "docs" did not start, its tools are missing: `},
		"no folder of conversations":              {plant: file("sessions"), want: "/sessions: not a directory: no conversation can be kept there", stops: true},
		"no folder of approvals":                  {plant: file("codex-mcp"), want: "/codex-mcp: not a directory: no approval counts"},
		"broken rules":                            {plant: file("codex-mcp", "rules.json"), want: "none of these rules counts"},
		"no folder to work in":                    {args: "--cd /no/such/folder", want: "--cd: /no/such/folder is not a folder", stops: true},
		"rules of the user's that cannot be read": {plant: func(t *testing.T, f folders) { must.OK(t, os.Mkdir(filepath.Join(f.home, "AGENTS.md"), 0o700)) }, want: "AGENTS.md", stops: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFolders(t)
			writeConfig(t, f.home, fmt.Sprintf("model = \"m\"\nmodel_provider = \"p\"\nmodel_providers.p.base_url = %q\n%s\n", model.URL, tt.codex))
			write(t, filepath.Join(f.home, "codex-mcp.toml"), strings.ReplaceAll(tt.ours, "$CWD", f.cwd)+"\n")
			if tt.plant != nil {
				tt.plant(t, f)
			}
			start := func(args ...string) (code int, all string) {
				cmd := f.command(t.Context(), built(t), append(args, strings.Fields(tt.args)...)...)
				out, _ := cmd.CombinedOutput() // the exit status is checked
				return cmd.ProcessState.ExitCode(), string(out)
			}
			began := time.Now()
			code, screen := start("doctor", "--engine", "native")
			want := 1
			if tt.want == "" {
				want, tt.want = 0, "tasks can run, with"
			}
			if code != want || !strings.Contains(screen, tt.want) || strings.Contains(screen, "no task can run") != tt.stops || time.Since(began) > doctorTime+5*time.Second {
				t.Errorf("exit status %d, want %d and %q:\n%s", code, want, tt.want, screen)
			}
			_, text := start("doctor", "--json", "--engine", "native")
			var d diagnosis
			must.OK(t, json.Unmarshal([]byte(text), &d))
			must.Equal(t, "a problem", tt.stops, d.Problem != "")
			must.Equal(t, "something that does not hold", want == 1 && !tt.stops, len(d.Broken) > 0)
			if tt.stops && tt.args == "" {
				if code, said := start("ask", "--engine", "native", "hi"); code != 3 || strings.Contains(said, "the server is gone") {
					t.Errorf("ask: exit status %d: %s", code, said)
				}
			}
			for _, dir := range []string{f.home, f.cwd} {
				if left := must.Get(filepath.Glob(filepath.Join(dir, ".codex-mcp-doctor-*")))(t); len(left) > 0 {
					t.Errorf("doctor leaves %v", left)
				}
			}
		})
	}
}

// TestCodexNetwork tries the addresses of an installed Codex, of which some do not answer.
func TestCodexNetwork(t *testing.T) {
	nobody := testenv.Nobody(t)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request came") }))
	t.Cleanup(secure.Close)
	const elsewhere = "not tried here"
	plain := strings.Replace(secure.URL, "https", "http", 1)
	for _, tt := range []struct {
		provider, config string
		method           protocol.AuthMode
		address, want    string
	}{
		{"", "", protocol.AuthAPIKey, "https://api.openai.com/v1", elsewhere},
		{"openai", "", protocol.AuthChatGPT, "https://chatgpt.com/backend-api/codex", elsewhere},
		{"openai", fmt.Sprintf("openai_base_url = %q", secure.URL), protocol.AuthAPIKey, secure.URL, "has an unknown authority"},
		{"p", fmt.Sprintf("model_providers.p.base_url = %q", "http://"+nobody), "", "http://" + nobody, "no model server listens at"},
		{"p", fmt.Sprintf("model_providers.p.base_url = %q", plain), "", plain, ""},
		{"unknown", "", "", "", ""},
	} {
		home := t.TempDir()
		writeConfig(t, home, tt.config)
		cfg := must.Get(config.Load(config.Layers{Home: home}))(t)
		address := codexAddress(cfg, &appserver.Report{Provider: tt.provider, Account: &appserver.Account{Method: tt.method}})
		must.Equal(t, tt.provider, tt.address, address)
		if tt.want != elsewhere {
			must.Fail(t, address, tt.want, native.Reach(t.Context(), address, func(string) string { return "" }))
		}
	}
}
