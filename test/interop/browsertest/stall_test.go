package browsertest

import (
	"context"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// A model that is silent for too long is marked, without any news of it, until it is
// heard again.
func TestStuck(t *testing.T) {
	speak := make(chan string)
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		for {
			select {
			case words := <-speak:
				host.Emit(protocol.AgentMessage{Message: words})
				if words == "done" {
					return nil
				}
				host.Emit(protocol.ExecCommandBegin{CallID: "1", Command: []string{"make"}, Cwd: "/"})
			case <-ctx.Done():
				return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
			}
		}
	})
	r := startWith(t, e, nil, &codexserver.Options{}, &page.Options{Stall: time.Millisecond})
	b := r.open(t)
	r.call("be silent")
	b.see(`document.querySelector(".conversation .state").textContent === "stuck" && document.querySelector(".stuck").checkVisibility() &&
		document.querySelector(".stuck").innerText.includes("Wait, or stop the turn")`)
	speak <- "I am there."
	b.see(`document.querySelector(".conversation .state").textContent === "working" && !document.querySelector(".stuck").checkVisibility()`)
	speak <- "done"
	b.see(`document.querySelector(".conversation .state").textContent === "idle" && !document.querySelector(".stuck").checkVisibility()`)
}
