package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestChosenTools distinguishes Codex's table tools from our list tools.
func TestChosenTools(t *testing.T) {
	load := func(file string, args ...string) (*config.Settings, map[string]any, error) {
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, config.SettingsFile), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		return config.LoadSettings(home, args)
	}
	for _, tt := range []struct {
		file  string
		args  []string
		want  []string
		codex map[string]any
	}{
		{"", nil, config.Choosable, nil},
		{`tools = []`, nil, []string{}, nil},
		{`tools = ["codex-wait", "codex", "codex-reply"]`, nil, []string{"codex-wait", "codex", "codex-reply"}, nil},
		{`tools = ["codex-wait"]`, []string{`tools=["codex-list"]`}, []string{"codex-list"}, nil},
		{`tools = ["codex-wait"]`, []string{`tools.web_search=true`}, []string{"codex-wait"}, map[string]any{"tools": map[string]any{"web_search": true}}},
		{"", []string{`tools={web_search=true}`, `tools=[]`, `tools.view_image=false`}, []string{}, map[string]any{"tools": map[string]any{"web_search": true, "view_image": false}}},
	} {
		s, codex, err := load(tt.file, tt.args...)
		if err != nil {
			t.Errorf("%s %q: %v", tt.file, tt.args, err)
			continue
		}
		if diff := cmp.Diff(tt.want, s.Tools); diff != "" {
			t.Errorf("%s %q: (-want +got)\n%s", tt.file, tt.args, diff)
		}
		if diff := cmp.Diff(tt.codex, codex, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s %q: for Codex (-want +got)\n%s", tt.file, tt.args, diff)
		}
	}
	for _, tt := range []struct{ file, arg, want string }{
		{`tools = ["codex-wait", "codex-nap"]`, "", `tools: "codex-nap" is not one of codex-interrupt`},
		{"[tools]\nweb_search = true", "", "codex-mcp.toml:1: tools: want a list of names of tools; Codex's table tools belongs in config.toml"},
		{"[tools]\nweb_search = true", `tools=["codex-wait"]`, "tools: want a list of names of tools"},
		{`tools = "codex-wait"`, "", "tools: want an array, have a string"},
		{"", "tools=codex-wait", "tools: want an array, have a string"},
		{"", `tools=["x"]`, `tools: "x" is not one of`},
		{`tools = [1]`, "", "tools.0: want a string"},
		{"session_tools = false", "", "session_tools: unknown key"},
	} {
		var args []string
		if tt.arg != "" {
			args = append(args, tt.arg)
		}
		if _, _, err := load(tt.file, args...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v, want %s", tt.file, tt.arg, err, tt.want)
		}
	}
}
