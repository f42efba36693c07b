package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestFetchSettings reads the table fetch. A list with a wrong entry is an error, even if the tool
// is off, so that nobody relies on it.
func TestFetchSettings(t *testing.T) {
	for _, tt := range []struct {
		file, arg string
		want      setting.Fetch
		err       string
	}{
		{},
		{file: "[fetch]\nhosts = [\"docs.example.com\"]", want: setting.Fetch{Hosts: []string{"docs.example.com"}}},
		{file: "[fetch]\nenabled = true\nhosts = [\"*.example.com\", \"http://127.0.0.1:8080\"]", want: setting.Fetch{Enabled: true, Hosts: []string{"*.example.com", "http://127.0.0.1:8080"}}},
		{file: "[fetch]\nhosts = [\"docs.example.com\"]", arg: "fetch.enabled=true", want: setting.Fetch{Enabled: true, Hosts: []string{"docs.example.com"}}},
		{file: "[fetch]\nenabled = true", arg: "fetch.enabled=false"},
		{file: "[fetch]\nenabled = \"ask\"", err: "codex-mcp.toml:2: fetch.enabled: want"},
		{file: "[fetch]\nenabled = true\nhosts = [\"example.com\",\n\"*\"]", err: `codex-mcp.toml:3: fetch.hosts: "*": `},
		{file: "[fetch]\nhosts = [\"https://example.com/docs\"]", err: "codex-mcp.toml:2: fetch.hosts: \"https://example.com/docs\": want a host without a path"},
		{arg: `fetch.hosts=["localhost"]`, err: "-c fetch.hosts: \"localhost\" names this machine"},
		{file: "[fetch]\nallow = [\"example.com\"]", err: "fetch.allow: unknown key"},
	} {
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, config.SettingsFile), []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		var args []string
		if tt.arg != "" {
			args = append(args, tt.arg)
		}
		s, codex, err := config.LoadSettings(home, args)
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q %q: %v", tt.file, tt.arg, err)
			}
		case err != nil:
			t.Errorf("%q %q: %v", tt.file, tt.arg, err)
		default:
			if diff := cmp.Diff(tt.want, s.Fetch, cmpopts.EquateEmpty()); diff != "" || len(codex) > 0 {
				t.Errorf("%q %q: Codex gets %v (-want +got)\n%s", tt.file, tt.arg, codex, diff)
			}
		}
	}
}
