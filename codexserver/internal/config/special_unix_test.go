//go:build unix

package config_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
)

// TestNamedPipe checks that a named pipe in the place of the file is an error at once.
func TestNamedPipe(t *testing.T) {
	const name = "config.toml"
	home := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(home, name), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(config.Layers{Home: home}); err == nil || !strings.Contains(err.Error(), name+" is a named pipe") {
		t.Errorf("load: %v", err)
	}
	if _, err := config.Saved(home); err == nil {
		t.Error("it was read")
	}
	if err := config.SetDefaultModel(home, new("m"), nil); err == nil {
		t.Error("it was changed")
	}
	config.Unknown(home)
}
