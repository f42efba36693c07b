package appserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

func raw(pairs ...string) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return m
}

// TestConfig translates the configuration of a caller into parameters of today's Codex.
func TestConfig(t *testing.T) {
	base := "be terse"
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	for _, test := range []struct {
		name    string
		cfg     protocol.Config
		options appserver.Options
		version string
		want    string // parameters of thread/start, but for the sandbox
		fails   string // or what the refusal says
	}{
		{"nothing", protocol.Config{}, appserver.Options{}, "", `{}`, ""},
		{"all", protocol.Config{Model: "m", ApprovalPolicy: protocol.ApprovalNever, Sandbox: protocol.SandboxWorkspaceWrite,
			BaseInstructions: &base, IncludePlanTool: new(true), IncludeApplyPatchTool: new(true), Overrides: raw("k", `{"a":{"b":1}}`, "c.d", `"e"`)},
			appserver.Options{}, "",
			`{"model":"m","approvalPolicy":"never","baseInstructions":"be terse","config":{"k.a.b":1,"c.d":"e"}}`, ""},
		{"prompts", protocol.Config{DeveloperInstructions: new("role"), CompactPrompt: new("sum \"up\"")}, appserver.Options{}, "",
			`{"developerInstructions":"role","config":{"compact_prompt":"sum \"up\""}}`, ""},
		{"prompts over keys", protocol.Config{CompactPrompt: new(""), Overrides: raw("compact_prompt", `"key"`, "developer_instructions", `"key"`)}, appserver.Options{}, "",
			`{"config":{"compact_prompt":"","developer_instructions":"key"}}`, ""},
		{"on-failure", protocol.Config{ApprovalPolicy: protocol.ApprovalOnFailure}, appserver.Options{}, "", `{"approvalPolicy":"on-request"}`, ""},
		{"an earlier Codex", protocol.Config{}, appserver.Options{}, "0.154.0", `{"config":{"features.shell_snapshot":false}}`, ""},
		{"policy as a key", protocol.Config{Overrides: raw("approval_policy", `"untrusted"`)}, appserver.Options{}, "", `{"approvalPolicy":"untrusted"}`, ""},
		{"policy twice", protocol.Config{ApprovalPolicy: protocol.ApprovalNever, Overrides: raw("approval_policy", `"untrusted"`)}, appserver.Options{}, "", `{"approvalPolicy":"never"}`, ""},
		{"policy by default", protocol.Config{}, appserver.Options{Overrides: map[string]any{"approval_policy": "on-failure"}}, "", `{"approvalPolicy":"on-request"}`, ""},
		{"finer policy", protocol.Config{Overrides: raw("approval_policy", `{"granular":{"rules":true}}`)}, appserver.Options{}, "", `{"config":{"approval_policy.granular.rules":true}}`, ""},
		{"profile", protocol.Config{Profile: "old"}, appserver.Options{}, "", `{"approvalPolicy":"untrusted","config":{"model":"old-model","tools.web_search":true}}`, ""},
		{"profile as a key", protocol.Config{Overrides: raw("profile", `"old"`, "model", `"mine"`)}, appserver.Options{}, "", `{"approvalPolicy":"untrusted","config":{"model":"mine","tools.web_search":true}}`, ""},
		{"profile by default", protocol.Config{}, appserver.Options{Overrides: map[string]any{"profile": "new"}}, "", `{"config":{"model":"new-model"}}`, ""},
		{"override over a profile", protocol.Config{Profile: "old"}, appserver.Options{Overrides: map[string]any{"tools": map[string]any{"web_search": false}}}, "",
			`{"approvalPolicy":"untrusted","config":{"model":"old-model"}}`, ""}, // the app-server was started with it
		{"unknown profile", protocol.Config{Profile: "nosuch"}, appserver.Options{}, "", ``, "nosuch.config.toml"},
		{"profile elsewhere", protocol.Config{Profile: "../x"}, appserver.Options{}, "", ``, "not a name"},
		{"profile no string", protocol.Config{Overrides: raw("profile", `5`)}, appserver.Options{}, "", ``, "profile is not a string"},
		{"dotted name", protocol.Config{Overrides: raw("mcp_servers", `{"a.b":{"command":"c"}}`)}, appserver.Options{}, "", `{"config":{"mcp_servers":{"a.b":{"command":"c"}}}}`, ""},
		{"no folder", protocol.Config{Cwd: "/no/such/folder"}, appserver.Options{}, "", ``, "argument /cwd: /no/such/folder does not exist"},
		{"not a folder", protocol.Config{Cwd: file}, appserver.Options{}, "", ``, "argument /cwd: " + file + " is not a folder"},
		{"duplicate keys", protocol.Config{Overrides: raw("k", `{"a":1,"a":2}`)}, appserver.Options{}, "", ``, "k"},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := t.TempDir()
			writeFile(t, filepath.Join(home, "config.toml"), "[profiles.old]\nmodel = \"old-model\"\napproval_policy = \"untrusted\"\n[profiles.old.tools]\nweb_search = true\n")
			writeFile(t, filepath.Join(home, "new.config.toml"), "model = \"new-model\"\n")
			bubble(t, func(t *testing.T, f *fake) {
				f.home = home
				if test.version != "" {
					f.version = test.version
				}
				sent := f.keep("thread/start")
				_, err := f.engine(test.options).Start(t.Context(), test.cfg, &recorder{})
				if test.fails != "" {
					var fault *engine.ConfigError
					if !errors.As(err, &fault) || !strings.Contains(err.Error(), test.fails) {
						t.Errorf("error %v, want %q", err, test.fails)
					}
					if strings.HasPrefix(test.fails, "argument /cwd") && len(f.runs) > 0 {
						t.Error("Codex was started")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				want := loose(t, test.want).(map[string]any)
				want["sandbox"] = "read-only" // in any case
				if diff := cmp.Diff(any(want), loose(t, withoutExclude(t, (*sent)[0]))); diff != "" {
					t.Errorf("sent (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// withoutExclude removes the excluded variables from the parameters of thread/start.
func withoutExclude(t *testing.T, params string) string {
	t.Helper()
	var p map[string]any
	if err := json.Unmarshal([]byte(params), &p); err != nil {
		t.Fatal(err)
	}
	config, _ := p["config"].(map[string]any)
	if _, ok := config["shell_environment_policy.exclude"]; !ok {
		t.Errorf("no key is withheld: %s", params)
	}
	if delete(config, "shell_environment_policy.exclude"); len(config) == 0 {
		delete(p, "config")
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

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
		{"disabled by the command line", appserver.Options{Overrides: off}, nil, `{"mcp_servers.other.enabled":false}`},
		{"the call knows better", appserver.Options{Overrides: off}, raw("mcp_servers.other.enabled", `true`, "mcp_servers.gone.command", `"x"`),
			`{"mcp_servers.other.enabled":true,"mcp_servers.gone.enabled":false,"mcp_servers.gone.command":"x"}`},
		{"disabled by the call", appserver.Options{}, raw("mcp_servers.web.enabled", `false`, "mcp_servers.gone.enabled", `false`),
			`{"mcp_servers.web.enabled":false}`},
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
