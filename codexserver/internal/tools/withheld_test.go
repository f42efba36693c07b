package tools_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// keeper is an engine that keeps some files from models.
type keeper struct{ engine.Engine }

func (keeper) Withheld(string) func(path string) error {
	return func(path string) error {
		if strings.Contains(path, "private") {
			return errors.New("denied here")
		}
		return nil
	}
}

// TestWithheldImages refuses an image that the engine's configuration keeps from models, by each of its names.
func TestWithheldImages(t *testing.T) {
	dir := boxtest.Folder(t)
	boxtest.Lay(t, dir, "work/private.png=\x89PNG\r\n\x1a\n", "work/open.png=\x89PNG\r\n\x1a\n", "private/a.png=\x89PNG\r\n\x1a\n",
		"work/link.png -> private.png")
	e := keeper{engine.TurnFunc(servertest.AskExec).Named("x")}
	c := servertest.Dial(t, codexserver.New(e, &codexserver.Options{Home: t.TempDir(), Folder: filepath.Join(dir, "work")}), nil)
	c.Ask(t, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	for path, refused := range map[string]bool{"private.png": true, "link.png": true, dir + "/private/a.png": true, "open.png": false} {
		said := c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"x","images":["`+path+`"]}}`)
		if strings.Contains(said, "denied here") != refused {
			t.Errorf("%s: %s", path, said)
		}
	}
}
