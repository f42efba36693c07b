package config_test

import (
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/tools/txtar"
)

func TestErrorsNameTheLine(t *testing.T) {
	faulty := servertest.Section(must.Get(txtar.ParseFile("testdata/unknown.txtar"))(t), "faulty/config.toml")
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
	a := must.Get(txtar.ParseFile("testdata/unknown.txtar"))(t)
	for _, file := range a.Files {
		name, ok := strings.CutSuffix(file.Name, "/config.toml")
		if !ok {
			continue
		}
		dir, overrides := home(t, map[string]string{"config.toml": string(file.Data)}), map[string]any{}
		for line := range strings.Lines(servertest.Section(a, name+"/arguments")) {
			key, value, err := config.ParseOverride(strings.TrimSuffix(line, "\n"))
			must.OK(t, err)
			overrides[strings.Trim(key, `"`)] = value
		}
		for codex, section := range map[bool]string{false: "/native", true: "/codex"} {
			want := strings.ReplaceAll(servertest.Section(a, name+section), "FILE", filepath.Join(dir, "config.toml"))
			must.Equal(t, name+section, strings.TrimSuffix(want, "\n"), strings.Join(config.Unknown(dir, overrides, codex), "\n"))
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
