package thread

import (
	"context"
	"encoding/json"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Watcher watches a turn. Only Ready may block. Event is called in order, one event at a
// time.
type Watcher interface {
	// Ready waits until there is room for the event m, or until ctx ends. It is called
	// before events that can wait, by several goroutines at a time. If m reports the start
	// of something, that has not started yet.
	Ready(ctx context.Context, m protocol.EventMsg)
	// Event reports an event of the turn. The thread's id is "" before the thread
	// has begun.
	Event(thread string, e protocol.Event)
	// Asked reports a question of the turn before it is decided.
	Asked(r *approval.Request)
	// Decided reports how a question of the turn ended.
	Decided(r *approval.Request, d approval.Decision)
	// Notice reports something that the user should read now.
	Notice(words string)
}

// Attendance has the watcher and the place of a turn, or of the start of a thread. With the
// zero value only the listeners receive the events, and no client can be asked.
type Attendance struct {
	// Watcher watches the turn. Default: none.
	Watcher Watcher
	// Observer also watches the turn, for metrics and traces. Default: none.
	Observer CallObserver
	// Begin, unless nil, is called when the turn is the first in the queue, before the
	// engine starts it.
	Begin func(ctx context.Context)
	// Awaited is true when a call waits for the result of the turn. Events of a
	// turn that no call waits for are kept for the first listener.
	Awaited bool
	// Place is asked the questions of the turn, in addition to the desk.
	Place board.Place
	// Elicit sends an elicitation/create request other than an approval, such as a form
	// of an MCP server. It is nil if the client cannot be asked.
	Elicit func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	// Patience is that of the turn's questions, see [approval.Request].
	Patience time.Duration
	// Leaves removes the watcher at the end of the turn. By default it also watches until
	// the next turn.
	Leaves bool
	// Submission is the id of the turn's events. Default: the thread's next id.
	Submission string
}
