//go:build unix

package auth_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/auth"
)

// TestNamedPipe checks that reading fails at once if the file is a named pipe.
func TestNamedPipe(t *testing.T) {
	home := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(home, "auth.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.APIKey(home); err == nil || !strings.Contains(err.Error(), "auth.json is a named pipe") {
		t.Errorf("error %v", err)
	}
}
