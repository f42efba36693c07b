package thread

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Event is what a client hears of a turn: an event, or a line of the server about the turn.
type Event struct {
	protocol.Event // without a Msg if there is only a line
	// Thread is the thread. Its id is "" before the thread has begun.
	Thread approval.Thread
	// Turn is the turn if it does something else from then on, else nil.
	Turn *turn.Turn
	// Notice is what the user should read now, or "".
	Notice string
}

// Sent reports whether clients get the event. They do not get a remark without words, which is for the result.
func (e Event) Sent() bool {
	m, ok := e.Msg.(protocol.BackgroundEvent)
	return e.Msg != nil && (!ok || m.Refused == nil && m.Missing == nil || m.Message != "")
}

// Observer is the client of a turn, which hears what the turn does.
type Observer interface {
	// Ready waits until there is room for an event, or until ctx ends. It is called
	// before events that can wait, by several goroutines at a time.
	Ready(ctx context.Context)
	// Event reports an event. It is called in order, one event at a time, and must not block.
	Event(e Event)
}

// TurnObserver observes one turn, until its end.
type TurnObserver interface {
	// Event reports an event. It is called in order, one event at a time.
	Event(m protocol.EventMsg)
	// Asked reports a question before it is decided, and Decided how it ended. They may be
	// called by several goroutines at a time.
	Asked(r *approval.Request)
	Decided(r *approval.Request, d approval.Decision)
	// End reports the end of the turn, with what [turn.Turn.Wait] returns.
	End(err error)
}
