package appserver_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	launching "github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const excludeKey = "shell_environment_policy.exclude"

// started starts a conversation for a client of an origin, or of none, with a fake that has a configuration, and
// returns the parameters of thread/start.
func started(t *testing.T, from *engine.Origin, configured string, o appserver.Options, cfg protocol.Config) (params map[string]any, err error) {
	t.Helper()
	bubble(t, func(t *testing.T, f *fake) {
		f.config = json.RawMessage(configured)
		f.on["thread/start"] = func(_ *run, req *jsonrpc.Request) (any, error) {
			return nil, json.Unmarshal(req.Params, &params)
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
		call map[string]json.RawMessage
		want map[string]any
	}{
		"policy":   {nil, map[string]any{"ADDED": "yes", "EDITOR": "one", "EQUALS": "a=b", "PATH": "/client/bin"}},
		"narrowed": {raw("shell_environment_policy.inherit", `"core"`), map[string]any{"ADDED": "yes", "PATH": "/client/bin"}},
		"none":     {raw("shell_environment_policy.inherit", `"none"`), map[string]any{"ADDED": "yes"}},
		"only":     {raw("shell_environment_policy.include_only", `["EDI*"]`), map[string]any{"EDITOR": "one"}},
	} {
		t.Run(name, func(t *testing.T) {
			params, err := started(t, from, configured, appserver.Options{}, protocol.Config{FromCall: true, Overrides: test.call})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]any{}
			for key, value := range params["config"].(map[string]any) {
				if name, ok := strings.CutPrefix(key, "shell_environment_policy."); ok {
					got[name] = value
				}
			}
			want := map[string]any{
				"inherit": "none", "ignore_default_excludes": true, "exclude": []any{}, "include_only": []any{}, "experimental_use_profile": false, "set": test.want,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the policy of the thread (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKeysAreWithheldOnTheBridge checks that Codex withholds the variables with keys from
// commands, in addition to what the user and the call exclude.
func TestKeysAreWithheldOnTheBridge(t *testing.T) {
	const configured = `{"shell_environment_policy":{"inherit":"core","exclude":["MINE*"],"include_only":null},
		"model_providers":{"a":{"env_key":"A_CRED","env_http_headers":{"x":"H_CRED"}},"b":{"env_key":null,"base_url":"env_key"}},
		"mcp_servers":{"s":{"bearer_token_env_var":"B_CRED","env_http_headers":{"y":"M_CRED"},"command":"COMMAND"}}}`
	credentials := []string{"A_CRED", "H_CRED", "B_CRED", "M_CRED"}
	for _, tt := range []struct {
		name  string
		cfg   protocol.Config
		want  []string // in addition to the names that are always withheld
		also  map[string]any
		fails string
	}{
		{"configured", protocol.Config{}, append([]string{"MINE*"}, credentials...), nil, ""},
		{"the user's own", protocol.Config{Overrides: raw("shell_environment_policy", `{"exclude":["NEW"]}`, "model_providers.c", `{"env_key":"C_CRED"}`)},
			append([]string{"NEW", "C_CRED"}, credentials...), map[string]any{"model_providers.c.env_key": "C_CRED"}, ""},
		{"a call", protocol.Config{FromCall: true, Overrides: raw("shell_environment_policy", `{"exclude":["CALL"],"inherit":"none"}`)},
			append([]string{"MINE*", "CALL"}, credentials...), map[string]any{"shell_environment_policy.inherit": "none"}, ""},
		{"a call that widens", protocol.Config{FromCall: true, Overrides: raw("shell_environment_policy.inherit", `"all"`)}, nil, nil,
			"shell_environment_policy.inherit: a call may narrow"},
		{"a call that sets", protocol.Config{FromCall: true, Overrides: raw("shell_environment_policy.set.PATH", `"/tmp"`)}, nil, nil,
			"a call may narrow"},
		{"a server that is not there", protocol.Config{FromCall: true, Overrides: raw("mcp_servers", `{"nosuch":{"enabled":false},"s":{"enabled":false}}`)},
			append([]string{"MINE*"}, credentials...), map[string]any{"mcp_servers.s.enabled": false}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			params, err := started(t, nil, configured, appserver.Options{}, tt.cfg)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("error %v, want %q", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sent := params["config"].(map[string]any)
			var got []string
			for _, name := range sent[excludeKey].([]any) {
				got = append(got, name.(string))
			}
			want := slices.Concat(launching.Secrets(), tt.want)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("withheld (-want +got):\n%s", diff)
			}
			delete(sent, excludeKey)
			if diff := cmp.Diff(tt.also, sent, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("beside that (-want +got):\n%s", diff)
			}
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
		if got := strings.Contains(list.Models[0].Name, name+"=value-"); got != want {
			t.Errorf("Codex sees %s: %v", name, got)
		}
	}
}
