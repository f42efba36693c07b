package approval

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Desk is a place besides the client where a person sees the work and answers questions,
// such as a page in a browser. It is called from several goroutines at a time. A panic in
// it is logged; in Ask it does not count as an answer.
type Desk interface {
	// Name is who decided, in results and records, when a person answers here. It never changes,
	// and is none of the words that this package has for others; package page's is [ByPage].
	Name() Decider
	// Event reports the events of a thread in order. Besides those of the engine there is
	// a [protocol.UserMessage] before each turn, and when the model reads a message that
	// was sent to the running turn, and a [protocol.ShutdownComplete] at the end. It must
	// not block. It may call the functions of the thread.
	Event(t Thread, m protocol.EventMsg)
	// Ask shows a question until it is answered or ctx ends, and returns the
	// answer as an MCP client sends it, an ElicitResult. An error does not count as an answer.
	Ask(ctx context.Context, r *Request) (json.RawMessage, error)
	// Decided reports every decision, also of a question that a rule answered and that was
	// never shown. It must not block.
	Decided(r *Request, d Decision)
}

// Inviter is a [Desk] that can say how a person reaches it.
type Inviter interface {
	// Invite returns a sentence for the user, for example with a link, or "" if a person is
	// at the desk already. The client receives it if it cannot show a question itself.
	Invite() string
}

// ErrElsewhere is in the cause of the end of Ask's context if the question was answered at
// another place. The cause adds the decision, and where it was made.
var ErrElsewhere = errors.New("the question was answered elsewhere")
