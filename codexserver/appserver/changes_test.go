package appserver_test

import (
	"flag"
	"fmt"
	"os/exec"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

var whole = flag.Bool("whole", false, "run every kind of change, and every hostile call with every client")

// TestChanges runs kinds of changes with an app-server that runs the command. Package report runs all
// of them, as the step soak does here; a few show that the turns of the bridge are looked at.
func TestChanges(t *testing.T) {
	servertest.RunChanges(t, *whole, func(t *testing.T, dir, script string, roots []string, after func()) engine.Engine {
		f := newFake(t)
		f.cwd, f.config = dir, map[string]any{"sandbox_mode": "workspace-write", "sandbox_workspace_write": map[string]any{"writable_roots": roots}}
		f.turn = func(r *run) {
			const item = `{"type":"commandExecution","id":"c0","command":"make","cwd":"/","status":%q,"exitCode":%d,"commandActions":[]}`
			r.item(threadID, r.current(), fmt.Sprintf(item, "inProgress", 0))
			asks(r) // the answer comes after the events before
			code := 0
			if out, err := exec.CommandContext(r.ctx, "sh", "-c", script).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", script, err, out)
				code = 1
			}
			r.notify("item/completed", `{"threadId":%q,"turnId":%q,"item":`+fmt.Sprintf(item, "completed", code)+`}`, threadID, r.current())
			asks(r)
			after()
			r.complete("completed")
		}
		return f.engine(appserver.Options{})
	})
}

// asks asks a question after the model's response has been counted.
func asks(r *run) {
	r.notify("thread/tokenUsage/updated", `{"threadId":%q,"turnId":%q,"tokenUsage":{"total":{"inputTokens":1},"last":{"inputTokens":1}}}`, threadID, r.current())
	r.askCommand(threadID, r.current())
}
