package appserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	launching "github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func raw(pairs ...string) (o protocol.Overrides) {
	m := map[string]json.RawMessage{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	text, err := json.Marshal(m)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		panic(err)
	}
	return o
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
			Choices: protocol.Choices{BaseInstructions: &base, IncludePlanTool: new(true)}, IncludeApplyPatchTool: new(true), Overrides: raw("k", `{"a":{"b":1}}`, "c.d", `"e"`)},
			appserver.Options{}, "",
			`{"model":"m","approvalPolicy":"never","baseInstructions":"be terse","config":{"k.a.b":1,"c.d":"e"}}`, ""},
		{"prompts", protocol.Config{Choices: protocol.Choices{DeveloperInstructions: new("role"), CompactPrompt: new("sum \"up\"")}}, appserver.Options{}, "",
			`{"developerInstructions":"role","config":{"compact_prompt":"sum \"up\""}}`, ""},
		{"prompts over keys", protocol.Config{Choices: protocol.Choices{CompactPrompt: new("")}, Overrides: raw("compact_prompt", `"key"`, "developer_instructions", `"key"`)}, appserver.Options{}, "",
			`{"config":{"compact_prompt":"","developer_instructions":"key"}}`, ""},
		{"a note", protocol.Config{Note: "NOTE"}, appserver.Options{}, "", `{"developerInstructions":"NOTE"}`, ""},
		{"a note after a choice", protocol.Config{Note: "NOTE", Choices: protocol.Choices{DeveloperInstructions: new("CHOSEN")}}, appserver.Options{}, "", `{"developerInstructions":"CHOSEN\n\nNOTE"}`, ""},
		{"a note after a key", protocol.Config{Note: "NOTE", Overrides: raw("developer_instructions", `"key"`)}, appserver.Options{}, "", `{"config":{"developer_instructions":"key"},"developerInstructions":"key\n\nNOTE"}`, ""},
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
		{"unknown profile", protocol.Config{Profile: "nosuch"}, appserver.Options{}, "", ``, `there is no "nosuch"`},
		{"profile elsewhere", protocol.Config{Profile: "../x"}, appserver.Options{}, "", ``, `there is no "../x"`},
		{"profile no string", protocol.Config{Overrides: raw("profile", `5`)}, appserver.Options{}, "", ``, "profile is not a string"},
		{"dotted name", protocol.Config{Overrides: raw("mcp_servers", `{"a.b":{"command":"c"}}`)}, appserver.Options{}, "", `{"config":{"mcp_servers":{"a.b":{"command":"c"}}}}`, ""},
		{"no folder", protocol.Config{Cwd: "/no/such/folder"}, appserver.Options{}, "", ``, "argument /cwd: /no/such/folder does not exist"},
		{"not a folder", protocol.Config{Cwd: file}, appserver.Options{}, "", ``, "argument /cwd: " + file + " is not a folder"},
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
				must.OK(t, err)
				want := loose(t, test.want).(map[string]any)
				want["sandbox"] = "read-only" // in any case
				must.Equal(t, "sent", any(want), loose(t, withoutExclude(t, (*sent)[0])))
			})
		})
	}
}

// withoutExclude removes the excluded variables from the parameters of thread/start.
func withoutExclude(t *testing.T, params string) string {
	t.Helper()
	var p map[string]any
	must.OK(t, json.Unmarshal([]byte(params), &p))
	config, _ := p["config"].(map[string]any)
	if _, ok := config["shell_environment_policy.exclude"]; !ok {
		t.Errorf("no key is withheld: %s", params)
	}
	if delete(config, "shell_environment_policy.exclude"); len(config) == 0 {
		delete(p, "config")
	}
	b := must.Get(json.Marshal(p))(t)
	return string(b)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
}

// TestServersOfAConversation disables an MCP server that would start this program again.
// Disabling an unknown server is not an error.
func TestServersOfAConversation(t *testing.T) {
	dir := t.TempDir()
	self := filepath.Join(dir, "codex-mcp")
	must.OK(t, testenv.WriteProgram(self, nil))
	off := map[string]any{"mcp_servers": map[string]any{"other": map[string]any{"enabled": false}, "gone": map[string]any{"enabled": false}}}
	for _, test := range []struct {
		name    string
		options appserver.Options
		call    protocol.Overrides
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
				must.Equal(t, "read with", map[int]string{1: `{"includeLayers":true}`, 2: `{"cwd":"/project","includeLayers":true}`}[reads], string(req.Params))
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
					delete(p.Config, "features.goals")
					sent[method] = p.Config
					return nil, err
				}
			}
			e := f.engine(test.options)
			cfg := protocol.Config{Overrides: test.call}
			must.Get(e.Start(t.Context(), cfg, &recorder{}))(t)
			must.Get(e.Resume(t.Context(), savedAt(writeRollout(t)), cfg, &recorder{}))(t)
			want := map[string]any{"thread/start": loose(t, test.want), "thread/resume": loose(t, test.want)}
			must.Equal(t, "result", want, sent)
			must.Equal(t, "the configuration was read", 2, reads)
			said := strings.Count(log.String(), "mcp_servers.codex is left out")
			if want := strings.Count(test.want, "codex.enabled"); said != want {
				t.Errorf("said %d times, want %d: %s", said, want, log.String())
			}
		})
	}
}

const excludeKey = "shell_environment_policy.exclude"

// started starts a conversation for a client of an origin, or of none, with a fake that has a configuration, and
// returns the parameters of thread/start.
func started(t *testing.T, from *engine.Origin, configured string, o appserver.Options, cfg protocol.Config) (params map[string]any, err error) {
	t.Helper()
	bubble(t, func(t *testing.T, f *fake) {
		f.config = json.RawMessage(configured)
		f.on["thread/start"] = func(_ *run, req *jsonrpc.Request) (any, error) {
			return nil, json.Unmarshal([]byte(goalsOff.Replace(string(req.Params))), &params)
		}
		ctx := t.Context()
		if from != nil {
			ctx = engine.WithOrigin(ctx, *from)
		}
		_, err = f.engine(o).Start(ctx, cfg, &recorder{})
	})
	return params, err
}

// TestEnvironmentOfAClientOnTheBridge checks that commands of a client of a shared server get
// the client's environment by the policy of the configuration, and nothing of this process's.
func TestEnvironmentOfAClientOnTheBridge(t *testing.T) {
	from := &engine.Origin{Folder: "/client", Environ: []string{"EDITOR=one", "PATH=/client/bin", "MY_TOKEN=x", "OPENAI_API_KEY=x", "SECRET_OF_PROVIDER=x", "HIDDEN=x", "EQUALS=a=b"}}
	const configured = `{"shell_environment_policy":{"inherit":"all","exclude":["HID*"],"set":{"ADDED":"yes"}},"model_providers":{"p":{"env_key":"SECRET_OF_PROVIDER"}}}`
	for name, test := range map[string]struct {
		call protocol.Overrides
		want map[string]any
	}{
		"policy":         {nil, map[string]any{"ADDED": "yes", "EDITOR": "one", "EQUALS": "a=b", "PATH": "/client/bin"}},
		"the user's own": {raw("shell_environment_policy.inherit", `"core"`), map[string]any{"ADDED": "yes", "PATH": "/client/bin"}},
	} {
		t.Run(name, func(t *testing.T) {
			params := must.Get(started(t, from, configured, appserver.Options{}, protocol.Config{Overrides: test.call}))(t)
			got := map[string]any{}
			for key, value := range params["config"].(map[string]any) {
				if name, ok := strings.CutPrefix(key, "shell_environment_policy."); ok {
					got[name] = value
				}
			}
			want := map[string]any{
				"inherit": "none", "ignore_default_excludes": true, "exclude": []any{}, "include_only": []any{}, "experimental_use_profile": false, "set": test.want,
			}
			must.Equal(t, "the policy of the thread", want, got)
		})
	}
}

// TestKeysAreWithheldOnTheBridge checks that Codex withholds the variables with keys from
// commands, in addition to what the user excludes.
func TestKeysAreWithheldOnTheBridge(t *testing.T) {
	const configured = `{"shell_environment_policy":{"inherit":"core","exclude":["MINE*"],"include_only":null},
		"model_providers":{"a":{"env_key":"A_CRED","env_http_headers":{"x":"H_CRED"}},"b":{"env_key":null,"base_url":"env_key"}},
		"mcp_servers":{"s":{"bearer_token_env_var":"B_CRED","env_http_headers":{"y":"M_CRED"},"command":"COMMAND"}}}`
	credentials := []string{"A_CRED", "H_CRED", "B_CRED", "M_CRED"}
	for _, tt := range []struct {
		name string
		cfg  protocol.Config
		want []string // in addition to the names that are always withheld
		also map[string]any
	}{
		{"configured", protocol.Config{}, append([]string{"MINE*"}, credentials...), nil},
		{"the user's own", protocol.Config{Overrides: raw("shell_environment_policy", `{"exclude":["NEW"]}`, "model_providers.c", `{"env_key":"C_CRED"}`)},
			append([]string{"NEW", "C_CRED"}, credentials...), map[string]any{"model_providers.c.env_key": "C_CRED"}},
		{"a server that is not there", protocol.Config{FromCall: true, Overrides: raw("mcp_servers", `{"nosuch":{"enabled":false},"s":{"enabled":false}}`)},
			append([]string{"MINE*"}, credentials...), map[string]any{"mcp_servers.s.enabled": false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			params := must.Get(started(t, nil, configured, appserver.Options{}, tt.cfg))(t)
			sent := params["config"].(map[string]any)
			var got []string
			for _, name := range sent[excludeKey].([]any) {
				got = append(got, name.(string))
			}
			want := slices.Concat(launching.Secrets(), tt.want)
			slices.Sort(want)
			must.Equal(t, "withheld", want, got)
			delete(sent, excludeKey)
			must.Equal(t, "beside that", tt.also, sent, cmpopts.EquateEmpty())
		})
	}
}

// TestCodexSeesNoKeysOfTheClient starts the app-server without the client's keys, except for
// those that Codex's configuration names.
func TestCodexSeesNoKeysOfTheClient(t *testing.T) {
	for name := range strings.FieldsSeq("ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN GEMINI_API_KEY CURSOR_API_KEY OPENAI_API_KEY PLAIN") {
		t.Setenv(name, "value-"+name)
	}
	home := t.TempDir()
	writeFile(t, filepath.Join(home, "config.toml"), "[mcp_servers.s]\ncommand = \"c\"\nenv_vars = [\"CURSOR_API_KEY\"]\n")
	e := program(t, "environ", appserver.Options{CodexHome: home, Overrides: map[string]any{
		"model_providers": map[string]any{"g": map[string]any{"env_key": "GEMINI_API_KEY"}},
	}})
	list, err := e.Models(t.Context())
	if err != nil || len(list.Models) == 0 {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"ANTHROPIC_API_KEY": false, "ANTHROPIC_AUTH_TOKEN": false, "CLAUDE_CODE_OAUTH_TOKEN": false,
		"GEMINI_API_KEY": true, "CURSOR_API_KEY": true, "OPENAI_API_KEY": true, "PLAIN": true,
	} {
		must.Equal(t, "Codex sees "+name, want, strings.Contains(list.Models[0].Name, name+"=value-"))
	}
}
