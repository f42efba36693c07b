//go:build unix

package config_test

import (
	"path/filepath"
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
	_, err := config.Load(config.Layers{Home: home})
	must.Fail(t, "load", name+" is a named pipe", err)
	config.Unknown(home, nil, true)
}
