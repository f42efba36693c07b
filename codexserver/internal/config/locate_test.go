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
