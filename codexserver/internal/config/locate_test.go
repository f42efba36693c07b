package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
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
	home := t.TempDir()
	path := filepath.Join(home, "config.toml")
	if err := os.WriteFile(path, []byte(faulty), 0o600); err != nil {
		t.Fatal(err)
	}
	profile := filepath.Join(home, "q.config.toml")
	if err := os.WriteFile(profile, []byte("\nsandbox_mode = \"open\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		layer config.Layers
		want  string // follows the path if it begins with a colon
	}{
		{"a type in a table", config.Layers{}, ":11: model_providers.x.request_max_retries: want an integer, have a string"},
		{"a word", config.Layers{Overrides: map[string]any{"model_providers.x.request_max_retries": int64(1)}}, `:3: sandbox_mode: "none" is not one of`},
		{"in a profile", config.Layers{Call: protocol.Config{Profile: "p", Sandbox: "read-only"}, Overrides: map[string]any{"model_providers.x.request_max_retries": int64(1)}}, `:14: approval_policy: "sometimes" is not one of`},
		{"in the file of a profile", config.Layers{Call: protocol.Config{Profile: "q"}, Overrides: map[string]any{"model_providers.x.request_max_retries": int64(1)}}, `PROFILE:2: sandbox_mode: "open" is not one of`},
		{"on the command line", config.Layers{Overrides: map[string]any{"sandbox_mode": "half", "model_providers.x.request_max_retries": int64(1)}}, `-c sandbox_mode: "half" is not one of`},
		{"not in the file", config.Layers{Call: protocol.Config{Sandbox: "all"}, Overrides: map[string]any{"model_providers.x.request_max_retries": int64(1)}}, `sandbox_mode: "all" is not one of`},
		{"a missing provider", config.Layers{Overrides: map[string]any{"model_provider": "y", "sandbox_mode": "read-only", "model_providers.x.request_max_retries": int64(1)}}, `-c model_provider: there is no "y"`},
	} {
		tt.layer.Home = home
		_, err := config.Load(tt.layer)
		want := strings.Replace(tt.want, "PROFILE", profile, 1)
		if strings.HasPrefix(want, ":") {
			want = path + want
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", tt.name, err, want)
		}
		var missing *config.MissingError
		if errors.As(err, &missing) != (tt.name == "a missing provider") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestUnknownKeys(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "config.toml")
	if err := os.WriteFile(path, []byte(faulty), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{path + ":4: colour", path + ":10: model_providers.x.wire", path + ":15: profiles.p.modle: do you mean model?"}
	if diff := cmp.Diff(want, unknown(home, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := unknown(t.TempDir(), nil); got != nil {
		t.Errorf("without a file: %q", got)
	}
}

// unknown returns the keys that have no effect. That the configuration can be loaded is not needed.
func unknown(home string, overrides map[string]any) (found []string) {
	_, _ = config.Load(config.Layers{Home: home, Overrides: overrides, Unknown: func(key string) { found = append(found, key) }})
	return found
}

func TestUnknownOverrides(t *testing.T) {
	overrides := map[string]any{
		"model": "m", "otel": map[string]any{"exporter": "none"}, // these keys are known
		"reasoning_effort": "high", "approval_polcy": "untrusted", "aprovals": 1, "model_providers": map[string]any{"x": map[string]any{"base_ulr": "y", "name": "x"}}, "default_permissions": ":read-only", "a.b": 1, "approvals_reviewer": "x", "auto_review": true,
	}
	want := []string{`-c "a.b"`, "-c approval_polcy: do you mean approval_policy?", "-c approvals_reviewer: the user is asked", "-c aprovals: do you mean approvals?", "-c auto_review: the user is asked", "-c default_permissions: sandbox_mode decides what commands may touch", "-c reasoning_effort", "-c model_providers.x.base_ulr: do you mean base_url?"}
	if diff := cmp.Diff(want, unknown(t.TempDir(), overrides)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnknownToCodex checks that a key of Codex never counts as misspelt, even if the
// native engine ignores it.
func TestUnknownToCodex(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "config.toml")
	if err := os.WriteFile(path, []byte("modle = \"m\"\n[otel]\nenvironment = \"x\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{path + ":1: modle: do you mean model?", "-c modl: do you mean model?"}, config.UnknownToCodex(home, map[string]any{"modl": "m", "otel": 1})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMisspelt checks that an argument of the command line that is a typo away from a key of approvals or
// of the sandbox is an error, and nothing else is.
func TestMisspelt(t *testing.T) {
	for arg, meant := range map[string]string{
		"approval_polcy=never":                            "approval_policy",
		"approval-policy=never":                           "approval_policy",
		"aproval_policy=never":                            "approval_policy",
		"sandbox_mod=read-only":                           "sandbox_mode",
		"sandboxmode=read-only":                           "sandbox_mode",
		"sandbox_workspace_wrte.writable_roots=1":         "sandbox_workspace_write",
		"sandbox_workspace_write.network_acces=1":         "network_access",
		"sandbox_workspace_write.exclude_slash_tpm=true":  "exclude_slash_tmp",
		"sandbox_workspace_write={exclude_slashtmp=true}": "exclude_slash_tmp",
		"aprovals.timeout='1m'":                           "approvals",
		"cals.full_access='deny'":                         "calls",
		"sandbx.helper=[]":                                "sandbox",
		"trusted_call=true":                               "calls.trusted",
		"locked_argument=[]":                              "calls.locked_arguments",
		"shell_enviroment_policy.inherit='none'":          "shell_environment_policy",
		"profiles.x.sandbox_mdoe=read-only":               "sandbox_mode",
		"modle=m":                                         "",
		"approval_policy=never":                           "",
		"approvals_reviewer=x":                            "",
		"sandbox_workspace_write.another_thing=1":         "",
		"profiles.sandbox_mod.model=m":                    "",
		"model_providers.sandbox_mod.name=m":              "",
		"tools.web_search=true":                           "",
	} {
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
		got := ""
		if _, _, err := config.LoadSettings(t.TempDir(), []string{arg}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", arg, got, want)
		}
	}
}
