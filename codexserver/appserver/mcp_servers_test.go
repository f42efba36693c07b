package appserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// TestServersOfAConversation disables an MCP server that would start this program again.
// Disabling an unknown server is not an error.
func TestServersOfAConversation(t *testing.T) {
	dir := t.TempDir()
	self := filepath.Join(dir, "codex-mcp")
	if err := os.WriteFile(self, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	off := map[string]any{"mcp_servers": map[string]any{"other": map[string]any{"enabled": false}, "gone": map[string]any{"enabled": false}}}
	for _, test := range []struct {
		name    string
		options appserver.Options
		call    map[string]json.RawMessage
		want    string // the config of thread/start, and of thread/resume
	}{
		{"itself", appserver.Options{Self: self}, nil, `{"mcp_servers.codex.enabled":false}`},
		{"nothing to do", appserver.Options{}, nil, `{}`},
		{"itself in the call's own configuration", appserver.Options{Self: self}, raw("mcp_servers", fmt.Sprintf(`{"me":{"command":"env","args":["A=b",%q]}}`, self)),
			fmt.Sprintf(`{"mcp_servers.codex.enabled":false,"mcp_servers.me.enabled":false,"mcp_servers.me.command":"env","mcp_servers.me.args":["A=b",%q]}`, self)},
		{"an address in its place", appserver.Options{Self: self}, raw("mcp_servers.codex.command", `"other"`),
			`{"mcp_servers.codex.command":"other"}`},
		{"disabled by the command line", appserver.Options{Overrides: off}, nil,
			`{"mcp_servers.other.enabled":false,"mcp_servers.gone.enabled":false,"mcp_servers.gone.command":"disabled"}`},
		{"the call knows better", appserver.Options{Overrides: off}, raw("mcp_servers.other.enabled", `true`, "mcp_servers.gone.command", `"x"`),
			`{"mcp_servers.other.enabled":true,"mcp_servers.gone.enabled":false,"mcp_servers.gone.command":"x"}`},
		{"disabled by the call", appserver.Options{}, raw("mcp_servers.web.enabled", `false`, "mcp_servers.gone.enabled", `false`),
			`{"mcp_servers.web.enabled":false,"mcp_servers.gone.enabled":false,"mcp_servers.gone.command":"disabled"}`},
	} {
		inBubble(t, test.name, func(t *testing.T, f *fake) {
			var log bytes.Buffer
			test.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
			reads := 0
			f.on["config/read"] = func(_ *run, req *jsonrpc.Request) (any, error) {
				reads++
				if want := map[int]string{1: `{"includeLayers":true}`, 2: `{"cwd":"/project","includeLayers":true}`}[reads]; string(req.Params) != want {
					t.Errorf("read with %s, want %s", req.Params, want)
				}
				return json.RawMessage(fmt.Sprintf(`{"config":{"model":"m","mcp_servers":{
					"codex":{"command":%q,"args":["mcp-server"],"enabled":true},
					"other":{"command":"other"},"web":{"url":"http://127.0.0.1:1"},"odd":{"command":5,"args":"x"}}}}`, self)), nil
			}
			f.on["thread/read"] = reply(`{"thread":{"path":"/rollout.jsonl","cwd":"/project"}}`)
			sent := map[string]any{}
			for _, method := range []string{"thread/start", "thread/resume"} {
				f.on[method] = func(_ *run, req *jsonrpc.Request) (any, error) {
					var p struct{ Config map[string]any }
					err := json.Unmarshal(req.Params, &p)
					delete(p.Config, "shell_environment_policy.exclude") // another test's
					sent[method] = p.Config
					return nil, err
				}
			}
			e := f.engine(test.options)
			cfg := protocol.Config{Overrides: test.call}
			if _, err := e.Start(t.Context(), cfg, &recorder{}); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Resume(t.Context(), savedAt(writeRollout(t)), cfg, &recorder{}); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"thread/start": loose(t, test.want), "thread/resume": loose(t, test.want)}
			if diff := cmp.Diff(want, sent); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if reads != 2 {
				t.Errorf("the configuration was read %d times", reads)
			}
			said := strings.Count(log.String(), "mcp_servers.codex is left out")
			if want := strings.Count(test.want, "codex.enabled"); said != want {
				t.Errorf("said %d times, want %d: %s", said, want, log.String())
			}
		})
	}
}
