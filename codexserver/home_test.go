package codexserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// TestHome checks where the key of open questions lasts. Without a home nothing is written anywhere.
func TestHome(t *testing.T) {
	for _, home := range []string{"", t.TempDir()} {
		t.Chdir(t.TempDir())
		c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.AskExec), &codexserver.Options{Home: home}), nil)
		got := c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"},"_meta":`+servertest.Capable(`"elicitation":{}`)+`}`)
		if _, err := os.Stat(filepath.Join(home, "codex-mcp", "key")); !strings.Contains(got, `"inputRequests"`) || (err == nil) != (home != "") {
			t.Errorf("with the home %q: %s, %v", home, got, err)
		}
		if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
			t.Errorf("left %v, %v", left, err)
		}
	}
}
