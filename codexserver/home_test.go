package codexserver_test

import (
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// TestNoHome asks a question without a home. Nothing is written anywhere.
func TestNoHome(t *testing.T) {
	t.Chdir(t.TempDir())
	c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil), nil)
	got := c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"},"_meta":`+servertest.Capable(`"elicitation":{}`)+`}`)
	if !strings.Contains(got, `"inputRequests"`) {
		t.Error(got)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
