package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/google/go-cmp/cmp"
)

// TestFailoverSettings reads the table failover.
func TestFailoverSettings(t *testing.T) {
	to := []setting.FailoverTo{{Provider: "b", Model: "m"}}
	for _, tt := range []struct {
		file, err string
		want      setting.Failover
	}{
		{file: "", want: setting.Failover{Wait: time.Minute}},
		{file: "[failover]\nto = [{ provider = \"b\", model = \"m\" }]\nwait = \"5s\"", want: setting.Failover{To: to, Wait: 5 * time.Second}},
		{file: "[[failover.to]]\nprovider = \"b\"\nmodel = \"m\"", want: setting.Failover{To: to, Wait: time.Minute}},
		{file: "[failover]\nto = [{ provider = \"b\" }]", err: "codex-mcp.toml:1: failover.to[0]: it needs a provider and a model"},
		{file: "[failover]\nwait = 0", err: "codex-mcp.toml:2: failover.wait: want more than 0"},
		{file: "[failover]\nfrom = \"a\"", err: "failover.from: unknown key"},
	} {
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, SettingsFile), []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		s, _, err := LoadSettings(home, nil)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q: %v, want %q", tt.file, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tt.file, err)
			continue
		}
		if diff := cmp.Diff(tt.want, s.Failover); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.file, diff)
		}
	}
}
