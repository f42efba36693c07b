package page

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestStuckAt reads from the stream, a minute after each step, when the model will count as
// stuck.
func TestStuckAt(t *testing.T) {
	for _, limit := range []time.Duration{0, 3 * time.Minute, -1} {
		synctest.Test(t, func(t *testing.T) { testStuckAt(t, limit) })
	}
}

func testStuckAt(t *testing.T, limit time.Duration) {
	p := newPage("127.0.0.1:1", &Options{Stall: limit})
	me, asked := approval.Thread{ID: "1"}, request("1", "true")
	const never, whole = -1, 5
	seen, stuckAt := uint64(0), int64(0)
	for _, tt := range []struct {
		name string
		step func()
		want int // minutes after the step
	}{
		{"there is no turn", func() { p.Event(me, protocol.SessionConfigured{SessionID: "1"}) }, never},
		{"a turn begins", func() { p.Event(me, protocol.TaskStarted{}) }, whole},
		{"silence", func() {}, whole - 1},
		{"trouble", func() { p.Event(me, protocol.StreamError{Message: "again"}) }, whole - 2},
		{"words", func() { p.Event(me, protocol.AgentMessageDelta{Delta: "a"}) }, whole},
		{"thoughts that are not shown", func() { p.Event(me, protocol.AgentReasoningRawContentDelta{Delta: "a"}) }, whole},
		{"a question", func() {
			if _, err := p.board.ask(t.Context(), asked); err != nil {
				t.Fatal(err)
			}
		}, never},
		{"an answer", func() {
			p.Decided(asked, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Approved}})
		}, whole},
		{"a decision by a rule", func() {
			p.Decided(request("1", "git"), approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Approved}})
		}, whole - 1},
		{"a command", func() { p.Event(me, protocol.ExecCommandBegin{CallID: "1", Command: []string{"true"}}) }, never},
		{"its end", func() { p.Event(me, protocol.ExecCommandEnd{CallID: "1"}) }, whole},
		{"the end", func() { p.Event(me, protocol.TaskComplete{}) }, never},
	} {
		tt.step()
		u, now, _ := p.board.since(seen)
		seen = now
		for _, c := range u.Conversations {
			stuckAt = c.StuckAt
		}
		want := int64(0)
		if tt.want != never && limit >= 0 {
			minutes := time.Duration(tt.want-whole) * time.Minute
			want = time.Now().Add(minutes + max(limit, 0)).UnixMilli()
			if limit == 0 {
				want = time.Now().Add(minutes + whole*time.Minute).UnixMilli()
			}
		}
		if off := stuckAt - want; off < 0 || off > 1000 {
			t.Errorf("limit %v: %s: stuck at %d ms, want %d", limit, tt.name, stuckAt, want)
		}
		<-time.After(time.Minute)
	}
}
