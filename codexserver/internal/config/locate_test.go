package config_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

const faulty = `model = "m"
# a comment
sandbox_mode = "none"
colour = "blue"
model_provider = "x"

[model_providers.x]
name = "x"
base_url = "http://127.0.0.1/v1"
wire = "chat"
request_max_retries = "many"

[profiles.p]
approval_policy = "sometimes"
modle = "n"

[tui]
theme = "dark"
`

func TestErrorsNameTheLine(t *testing.T) {
	dir := home(t, map[string]string{"config.toml": faulty, "q.config.toml": "\nsandbox_mode = \"open\"\n"})
	retries := map[string]any{"model_providers.x.request_max_retries": 1} // which mends a part
	for _, tt := range []struct {
		layer config.Layers
		flags map[string]any
		want  string // follows the folder if it begins with /
	}{
		{config.Layers{}, nil, "/config.toml:11: model_providers.x.request_max_retries: want an integer, have a string"},
		{config.Layers{}, retries, `/config.toml:3: sandbox_mode: "none" is not one of`},
		{config.Layers{Call: protocol.Config{Profile: "p", Sandbox: "read-only"}}, retries, `/config.toml:14: approval_policy: "sometimes" is not one of`},
		{config.Layers{Call: protocol.Config{Profile: "q"}}, retries, `/q.config.toml:2: sandbox_mode: "open" is not one of`},
		{config.Layers{Overrides: map[string]any{"sandbox_mode": "half"}}, retries, `-c sandbox_mode: "half" is not one of`},
		{config.Layers{Call: protocol.Config{Sandbox: "all"}}, retries, `sandbox_mode: "all" is not one of`},
		{config.Layers{Overrides: map[string]any{"model_provider": "y", "sandbox_mode": "read-only"}}, retries, `-c model_provider: there is no "y"`},
	} {
		tt.layer.Home = dir
		if tt.layer.Overrides == nil {
			tt.layer.Overrides = map[string]any{}
		}
		maps.Copy(tt.layer.Overrides, tt.flags)
		_, err := config.Load(tt.layer)
		if want := strings.Replace(tt.want, "/", dir+string(filepath.Separator), 1); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if errors.Is(err, config.ErrMissing) != strings.Contains(tt.want, "there is no") {
			t.Errorf("a missing name: %v", err)
		}
	}
}

// TestUnknownKeys lists the keys without an effect, in the native engine and for Codex, which knows more.
func TestUnknownKeys(t *testing.T) {
	for _, tt := range []struct {
		file        string
		overrides   map[string]any
		want, codex string // FILE stands for the path; a line each
	}{
		{"", nil, "", ""},
		{faulty, nil, "FILE:4: colour\nFILE:10: model_providers.x.wire\nFILE:15: profiles.p.modle: do you mean model?",
			"FILE:4: colour: do you mean cloud?\nFILE:10: model_providers.x.wire\nFILE:15: profiles.p.modle: do you mean model?"},
		{"modle = \"m\"\n[otel]\nenvironment = \"x\"\n", map[string]any{"modl": "m", "otel": 1},
			"FILE:1: modle: do you mean model?\n-c modl: do you mean model?", "FILE:1: modle: do you mean model?\n-c modl: do you mean model?"},
		{`hooks = {}
personality = "pragmatic"
[tools]
view_image = true
fly = true
[mcp_servers.s]
command = "c"
env_vars = ["A"]
enabled_tools = ["a"]
[mcp_servers.s.tools.a]
approval_mode = "approve"
[permissions.strict]
[nosuch.table]
a = 1
[shell_environment_policy]
exlude = []
`, nil, `FILE:1: hooks: no hook runs
FILE:13: nosuch
FILE:12: permissions: sandbox_mode decides what commands may touch
FILE:8: mcp_servers.s.env_vars
FILE:16: shell_environment_policy.exlude: do you mean exclude?
FILE:5: tools.fly`, `FILE:13: nosuch
FILE:8: mcp_servers.s.env_vars
FILE:16: shell_environment_policy.exlude: do you mean exclude?
FILE:5: tools.fly`},
		{"", map[string]any{
			"model": "m", "otel": map[string]any{"exporter": "none"}, // these keys are known
			"reasoning_effort": "high", "approval_polcy": "untrusted", "aprovals": 1, "model_providers": map[string]any{"x": map[string]any{"base_ulr": "y", "name": "x"}}, "default_permissions": ":read-only", "a.b": 1, "approvals_reviewer": "x", "auto_review": true,
		}, `-c "a.b"
-c approval_polcy: do you mean approval_policy?
-c approvals_reviewer: the user is asked
-c aprovals: do you mean approvals?
-c auto_review: the user is asked
-c default_permissions: sandbox_mode decides what commands may touch
-c reasoning_effort
-c model_providers.x.base_ulr: do you mean base_url?`, `-c "a.b"
-c approval_polcy: do you mean approval_policy?
-c aprovals: do you mean approvals?
-c reasoning_effort
-c model_providers.x.base_ulr: do you mean base_url?`},
	} {
		dir := home(t, map[string]string{"config.toml": tt.file})
		for codex, want := range map[bool]string{false: tt.want, true: tt.codex} {
			got := strings.Join(config.Unknown(dir, tt.overrides, codex), "\n")
			must.Equal(t, fmt.Sprintf("%s %v", tt.file, tt.overrides), strings.ReplaceAll(want, "FILE", filepath.Join(dir, "config.toml")), got)
		}
	}
}

// TestMisspelt checks that an argument of the command line that is a typo away from a key of approvals or
// of the sandbox is an error, and nothing else is.
func TestMisspelt(t *testing.T) {
	for meant, arguments := range map[string][]string{
		"approval_policy":          {"approval_polcy=never", "approval-policy=never", "aproval_policy=never"},
		"sandbox_mode":             {"sandbox_mod=read-only", "sandboxmode=read-only", "profiles.x.sandbox_mdoe=read-only"},
		"sandbox_workspace_write":  {"sandbox_workspace_wrte.writable_roots=1"},
		"network_access":           {"sandbox_workspace_write.network_acces=1"},
		"exclude_slash_tmp":        {"sandbox_workspace_write.exclude_slash_tpm=true", "sandbox_workspace_write={exclude_slashtmp=true}"},
		"approvals":                {"aprovals.timeout='1m'"},
		"calls":                    {"cals.full_access='deny'"},
		"sandbox":                  {"sandbx.helper=[]"},
		"calls.trusted":            {"trusted=true"},
		"calls.full_access":        {"full_acces='deny'"},
		"calls.locked_arguments":   {"locked_argument=[]"},
		"shell_environment_policy": {"shell_enviroment_policy.inherit='none'"},
		"": {
			"modle=m", "approval_policy=never", "approvals_reviewer=x", "sandbox_workspace_write.another_thing=1",
			"profiles.sandbox_mod.model=m", "model_providers.sandbox_mod.name=m", "tools.web_search=true",
		},
	} {
		for _, arg := range arguments {
			key, _, _ := strings.Cut(arg, "=")
			if strings.Contains(arg, "={") {
				key += ".exclude_slashtmp"
			}
			if meant == "sandbox_workspace_write" || meant == "approvals" || meant == "calls" || meant == "sandbox" || meant == "shell_environment_policy" {
				key, _, _ = strings.Cut(key, ".")
			}
			want := ""
			if meant != "" {
				want = "-c " + key + ": unknown key; do you mean " + meant + "?"
			}
			if _, _, err := settings(t, "", arg); err == nil && want != "" || err != nil && err.Error() != want {
				t.Errorf("%s: %v, want %q", arg, err, want)
			}
		}
	}
}
