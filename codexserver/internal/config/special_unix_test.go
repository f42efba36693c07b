//go:build unix

package config_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestNamedPipe checks that reading fails at once if the file is a named pipe.
func TestNamedPipe(t *testing.T) {
	const name = "config.toml"
	home := t.TempDir()
	must.OK(t, syscall.Mkfifo(filepath.Join(home, name), 0o600))
	if _, err := config.Load(config.Layers{Home: home}); err == nil || !strings.Contains(err.Error(), name+" is a named pipe") {
		t.Errorf("load: %v", err)
	}
	config.Unknown(home, nil, true)
}
