package codexserver_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestHome asks a question and says much. Without a home nothing is written anywhere; with one, the log of the
// conversation is kept in its folder for temporary files.
func TestHome(t *testing.T) {
	for _, home := range []string{"", "home"} {
		t.Chdir(t.TempDir())
		o := &codexserver.Options{Changes: codexserver.ChangeOptions{Off: true}, Calls: codexserver.CallOptions{Tools: []string{}}}
		if home != "" {
			o.Home = filepath.Join(t.TempDir(), home)
		}
		c := servertest.Dial(t, codexserver.New(engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
			host.Emit(protocol.AgentMessage{Message: strings.Repeat("x", 1<<20)})
			return servertest.AskExec(ctx, host, in)
		}), o), nil)
		got := c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"},"_meta":`+servertest.Capable(`"elicitation":{}`)+`}`)
		if !strings.Contains(got, `"inputRequests"`) {
			t.Error(got)
		}
		if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
			t.Errorf("left %v, %v", left, err)
		}
		open, err := filepath.Glob("/proc/self/fd/*") // the log has no name any more
		if runtime.GOOS != "linux" {
			continue
		}
		kept := slices.ContainsFunc(open, func(fd string) bool {
			file, _ := os.Readlink(fd)
			return strings.HasPrefix(file, filepath.Join(o.Home, "tmp", "log-"))
		})
		if kept != (home != "") || err != nil {
			t.Errorf("home %q: the log is in a file of it: %t, %v", home, kept, err)
		}
	}
}
