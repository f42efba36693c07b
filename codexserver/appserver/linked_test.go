package appserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestLinkedConfiguration begins conversations whose commands could write what a link in
// Codex's home leads to: Codex's sandbox does not protect it.
func TestLinkedConfiguration(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	if err := os.Symlink(filepath.Join(work, "config.toml"), filepath.Join(home, "codex-mcp.toml")); err != nil {
		t.Skip(err)
	}
	for mode, want := range map[protocol.SandboxMode]bool{
		protocol.SandboxReadOnly: true, protocol.SandboxWorkspaceWrite: false, protocol.SandboxDangerFullAccess: true,
	} {
		f := newFake(t)
		f.home = home
		c, err := f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{Cwd: work, Sandbox: mode}, &recorder{})
		if err == nil {
			_ = c.Close()
		}
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "which commands could write") {
			t.Errorf("%s: %v", mode, err)
		}
	}
}
