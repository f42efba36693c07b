//go:build !race

package codexserver_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestBackgroundTurnKeepsNoEvents runs a turn in the background that streams 40 MB, for a principal. No method can
// listen to its thread, which stays open.
func TestBackgroundTurnKeepsNoEvents(t *testing.T) {
	const deltas, size, most = 5_000, 8_000, 1 << 20
	e := engine.TurnFunc(func(_ context.Context, h engine.Host, in []protocol.InputItem) error {
		if protocol.TextOf(in) == "stream" {
			for i := range deltas {
				h.Emit(protocol.AgentMessageDelta{Delta: fmt.Sprint(i) + strings.Repeat("x", size)})
			}
		}
		h.Emit(protocol.AgentMessage{Message: "done"})
		return nil
	})
	ann := codexserver.New(e, nil).Principal(t.Context(), "ann")
	defer ann.Close()
	c := servertest.Dial(t, way(ann.Exchange), nil)
	call := func(tool, arguments string) string {
		return c.Ask(t, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":%s}`, tool, arguments, servertest.Meta))
	}
	run := func(prompt string) {
		thread := servertest.ThreadOf(t, call("codex", fmt.Sprintf(`{"prompt":%q,"background":true}`, prompt)))
		if got := call("codex-wait", fmt.Sprintf(`{"threadIds":[%q]}`, thread)); !strings.Contains(got, "done") {
			t.Fatalf("codex-wait: %s", got)
		}
	}
	run("short") // what the first turn makes for all
	before := inUse()
	run("stream")
	if grown := int64(inUse()) - int64(before); grown > most {
		t.Errorf("the heap has %d bytes more after the turn, want at most %d", grown, most)
	}
	runtime.KeepAlive(c)
}

// inUse returns how many bytes of the heap are in use.
func inUse() uint64 {
	runtime.GC()
	runtime.GC() // also what had a finalizer
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
