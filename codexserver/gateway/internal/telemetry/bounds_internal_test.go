package telemetry

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/workerlink"
)

// TestTurnBounds checks that a turn of a worker that reports without end is bounded.
func TestTurnBounds(t *testing.T) {
	tel, err := New(Options{Getenv: func(string) string { return "" }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	o := tel.User("ann").Begin("ann", "codex", nil).Turn("t", protocol.TokenUsage{})
	for n := range 3 * maxOpen {
		what := []workerlink.What{workerlink.Runs, workerlink.Calls, "unknown"}[n%3]
		o.Step(workerlink.Step{What: what, Call: fmt.Sprint(n)})
		o.Asked(uint64(n), "command")
	}
	if len(o.calls) != maxOpen || len(o.questions) != maxOpen || len(o.model.calls) != 2*maxOpen {
		t.Errorf("%d calls, %d questions, %d of both", len(o.calls), len(o.questions), len(o.model.calls))
	}
	o.Step(workerlink.Step{What: workerlink.Ran, Call: "unknown"})
	o.Decided(1<<40, "approved", "client")
	o.End(nil)
}
