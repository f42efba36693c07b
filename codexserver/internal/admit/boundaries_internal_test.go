package admit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRootsBoundary makes as many folders writable as a call may, one less and one more.
func TestRootsBoundary(t *testing.T) {
	for n, fits := range map[int]bool{0: true, maxRoots - 1: true, maxRoots: true, maxRoots + 1: false} {
		dir := t.TempDir()
		list := make([]any, n)
		for i := range list {
			list[i] = filepath.Join(dir, fmt.Sprint(i))
			must.OK(t, os.Mkdir(list[i].(string), 0o700))
		}
		cfg := &protocol.Config{Cwd: dir, Overrides: protocol.Overrides{workspaceTable: map[string]any{"writable_roots": list}}}
		err := Bounds{dir}.roots(cfg)
		if (err == nil) != fits {
			t.Errorf("%d folders: %v", n, err)
		}
	}
}

// TestLockedConfigBoundary lets a conversation have the argument config without a key where it is locked, but no key.
func TestLockedConfigBoundary(t *testing.T) {
	dir := t.TempDir()
	r := New(setting.Calls{LockedArguments: []string{"config"}}, dir)
	for keys, fits := range []bool{true, false, false} {
		cfg := &protocol.Config{Cwd: dir, Overrides: protocol.Overrides{}}
		for _, key := range []string{"model", "model_verbosity"}[:keys] {
			cfg.Overrides[key] = "low"
		}
		if _, err := r.Conversation(cfg, dir); (err == nil) != fits {
			t.Errorf("%d keys: %v", keys, err)
		}
	}
	must.Equal(t, "the locked arguments", []string{"config", "web-search"}, r.Locked)
}
