package thread

import (
	"context"
	"encoding/json"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/internal/slots"
)

// Attend is who attends a turn, or the start of a thread: who observes it, and who is asked its questions
// besides the desk. With the zero value only the thread's own observers receive the events, and no client
// can be asked.
type Attend struct {
	// Ask is asked the questions of the turn. Nil is a client that cannot be asked.
	Ask *approve.Place
	// Comes is true when somebody may attach another place for the questions of the turn, such as with
	// codex-wait, so that they are open meanwhile.
	Comes bool
	// Elicit asks a question of another party, such as an MCP server, and returns the result
	// for it. It is nil if the client cannot be asked.
	Elicit func(ctx context.Context, f *approval.Foreign) (json.RawMessage, error)
	// Timeout is that of the turn's questions, see [approval.Request].
	Timeout time.Duration
	// Client hears the turn, and at the start of a thread what comes before its first one. Nil does not.
	Client Observer
	// Review names a review for people, who see it in place of the prompt. Every question of the turn is denied without
	// asking. It is "" for other turns.
	Review string
	// Keeps makes a thread that begins keep its events for the first listener, also those of later turns, and stay open
	// however long nobody uses it: its client cannot resume it.
	Keeps bool
	// Attempt says which of several attempts the turn is, such as "attempt 2 of 3", for its questions; "" for other turns.
	Attempt string
	// InTurn has the questions of several turns asked one at a time. Nil does not.
	InTurn slots.Slots
	// Turn is the turn, which the thread begins. The start of a thread needs none.
	Turn *turn.Turn
	// Submission is the id of the turn's events. Default: the thread's next id.
	Submission string
}
