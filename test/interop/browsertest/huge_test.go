package browsertest

import (
	"context"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// A patch with very many lines is there whole, and does not hold up the page:
// an element for each took Chromium twenty seconds for a million.
func TestHugePatch(t *testing.T) {
	const lines = 100_000
	added, changed := strings.Repeat("a\n", lines), strings.Repeat("-a\n+b\n", lines/2)
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		out := host.ApprovePatch(ctx, protocol.PatchApprovalRequest{Cwd: "/work", Changes: map[string]protocol.FileChange{
			"/work/a.txt": {Add: &protocol.FileContent{Content: added}},
			"/work/b.txt": {Update: &protocol.FileUpdate{UnifiedDiff: changed}},
		}})
		host.Emit(protocol.AgentMessage{Message: string(out.Decision)})
		return nil
	})
	r := start(t, e, nil)
	b := r.open(t)
	answer := r.call("go")
	b.see(`questions.size === 1`)
	if n := eval[int](b, `document.querySelectorAll(".ask *").length`); n > 10_000 {
		t.Errorf("%d elements", n)
	}
	for i, want := range []string{strings.ReplaceAll(added, "a", "+a"), changed} {
		if got := eval[int](b, `document.querySelectorAll(".ask .diff")[`+string(rune('0'+i))+`].textContent.length`); got != len(want) {
			t.Errorf("file %d: %d characters, want %d", i, got, len(want))
		}
	}
	b.click("Approve once")
	if got := get(t, answer); got != "approved" {
		t.Errorf("%q", got)
	}
}
