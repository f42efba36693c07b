package thread

import (
	"context"
	"encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Watcher sees what happens in a turn. Its methods but Ready are called one at a
// time, in order, and must not block.
type Watcher interface {
	// Ready waits until there is room for another event, or ctx ends. It is called
	// before events that can wait, by several goroutines at a time.
	Ready(ctx context.Context)
	// Event reports an event of the turn. The thread's id is "" before the thread
	// has begun.
	Event(thread string, e protocol.Event)
	// Decided reports how a question of the turn ended.
	Decided(d approval.Decision)
	// Notice reports something that the user should read now.
	Notice(words string)
}

// Attendance is who attends a turn, or the start of a thread. The zero value
// attends nothing: the events go to the listeners alone, and no client can be
// asked.
type Attendance struct {
	// Watcher sees the turn. None by default.
	Watcher Watcher
	// Awaited is true when a call waits for the result of the turn. Events of a
	// turn that no call waits for are kept for the first listener.
	Awaited bool
	// Place is where the questions of the turn stand, beside the desk.
	Place approval.Place
	// Elicit sends an elicitation/create request that is no approval, such as a
	// form of an MCP server. Nil when the client cannot be asked.
	Elicit func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	// Submission is the id of the turn's events. "" takes the thread's next.
	Submission string
}
