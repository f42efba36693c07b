package thread

import (
	"context"
	"encoding/json"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Watcher sees what happens in a turn. Its methods but Ready must not block. Event
// is called in order, one event at a time.
type Watcher interface {
	// Ready waits until there is room for the event m, or ctx ends. It is called
	// before events that can wait, by several goroutines at a time; what m says
	// begins has not begun.
	Ready(ctx context.Context, m protocol.EventMsg)
	// Event reports an event of the turn. The thread's id is "" before the thread
	// has begun.
	Event(thread string, e protocol.Event)
	// Asked reports a question of the turn before anybody decides about it.
	Asked(r *approval.Request)
	// Decided reports how a question of the turn ended.
	Decided(r *approval.Request, d approval.Decision)
	// Notice reports something that the user should read now.
	Notice(words string)
}

// Attendance is who attends a turn, or the start of a thread. The zero value
// attends nothing: the events go to the listeners alone, and no client can be
// asked.
type Attendance struct {
	// Watcher sees the turn. None by default.
	Watcher Watcher
	// Observer sees the turn too, for metrics and traces. None by default.
	Observer CallObserver
	// Begin is called when the turn begins, before the engine starts it: its turn in the
	// queue has come, and no other turn of the thread runs. Nil does nothing.
	Begin func(ctx context.Context)
	// Awaited is true when a call waits for the result of the turn. Events of a
	// turn that no call waits for are kept for the first listener.
	Awaited bool
	// Place is where the questions of the turn are put, in addition to the desk.
	Place approval.Place
	// Elicit sends an elicitation/create request other than an approval, such as a form
	// of an MCP server. Nil when the client cannot be asked.
	Elicit func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	// Patience is that of the turn's questions, see [approval.Request].
	Patience time.Duration
	// Leaves lets go of the watcher at the end of the turn. By default it also sees
	// what happens until the next turn.
	Leaves bool
	// Submission is the id of the turn's events. "" takes the thread's next.
	Submission string
}
