//go:build unix

package native_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestNamedPipeAsConfiguration replaces config.toml by a named pipe: New and Start fail at
// once, and an open conversation continues.
func TestNamedPipeAsConfiguration(t *testing.T) {
	b := setup(t, "", native.Limits{}, providertest.Say("one"), providertest.Say("two"))
	c := b.start(t, &host{}, protocol.Config{})
	path := filepath.Join(b.home, "config.toml")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	mkfifo(t, path)
	const want = "config.toml is a named pipe"
	if _, err := native.New(&native.Options{CodexHome: b.home}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("New: %v", err)
	}
	if _, err := b.engine.Start(t.Context(), protocol.Config{}, &host{}); !as[*engine.ConfigError](err) || !strings.Contains(err.Error(), want) {
		t.Errorf("Start: %v", err)
	}
	says(t, c, "first", "second")
}
