//go:build unix

package rollout_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
)

// TestNamedPipe replaces the file by a named pipe: Load and Open fail at once.
func TestNamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rollout.jsonl")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := rollout.Load(path); err == nil || !strings.Contains(err.Error(), "rollout.jsonl is a named pipe") {
		t.Errorf("load: %v", err)
	}
	if err := rollout.At(path, nil).Take(func() error { return nil }); err == nil || !strings.Contains(err.Error(), "rollout.jsonl is not a regular file") {
		t.Errorf("open: %v", err)
	}
}
