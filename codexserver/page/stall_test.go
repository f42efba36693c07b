package page

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
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
	log, turn := turnlog.NewStore(turnlog.MaxInMemory).New(), turnlog.NewTurn()
	me, asked := approval.Thread{ID: "1", Silent: log.Silent}, request("1", "true")
	asked.Thread = me
	event := func(m protocol.EventMsg) {
		log.Add(turn, "", m)
		p.Event(me, m)
	}
	decided := func(r *approval.Request) {
		d := approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Approved}}
		p.Decided(r, d)
		log.Decided(turn, r, d)
		p.Alive("1")
	}
	const never, whole = -1, 5
	seen, stuckAt := uint64(0), int64(0)
	for _, tt := range []struct {
		name string
		step func()
		want int // minutes after the step
	}{
		{"there is no turn", func() { event(protocol.SessionConfigured{SessionID: "1"}) }, never},
		{"a turn begins", func() { event(protocol.TaskStarted{}) }, whole},
		{"silence", func() {}, whole - 1},
		{"trouble", func() { event(protocol.StreamError{Message: "again"}) }, whole - 2},
		{"words", func() { event(protocol.AgentMessageDelta{Delta: "a"}) }, whole},
		{"thoughts that are not shown", func() { event(protocol.AgentReasoningRawContentDelta{Delta: "a"}) }, whole},
		{"a question", func() {
			log.Asked(turn, asked)
			if _, err := p.board.ask(t.Context(), asked); err != nil {
				t.Fatal(err)
			}
		}, never},
		{"an answer", func() { decided(asked) }, whole},
		{"silence again", func() {}, whole - 1},
		{"a decision by a rule", func() {
			r := request("1", "git")
			r.Thread = me
			decided(r)
		}, whole},
		{"a command", func() { event(protocol.ExecCommandBegin{CallID: "1", Command: []string{"true"}}) }, never},
		{"its end", func() { event(protocol.ExecCommandEnd{CallID: "1"}) }, whole},
		{"the end", func() { event(protocol.TaskComplete{}) }, never},
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
