package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Engine starts conversations. It is safe for concurrent use.
type Engine interface {
	// Start begins a conversation. A fault in the configuration is a [*ConfigError]; any
	// other error says why the conversation could not start. ctx bounds only Start, not
	// the conversation.
	Start(ctx context.Context, cfg protocol.Config, host Host) (Conversation, error)
}

// Conversation is a history that turns are added to.
type Conversation interface {
	// ID is the conversation's id, a UUID; it does not change.
	ID() string
	// Turn runs one turn to its end. It returns nil, a [*TurnError] or an
	// [*AbortError].
	Turn(ctx context.Context, in protocol.TurnInput) error
	// Close frees what the conversation holds. No turn is running when it is called.
	Close() error
}

// Host is the server's side of a conversation. It is safe for concurrent use.
type Host interface {
	// Emit reports an event of the conversation. If the client of the turn is far behind in
	// its reading, Emit waits until it has read more or the turn is interrupted. It does not
	// wait with events that end a turn early, nor for an engine that streams, see [Traits].
	Emit(protocol.EventMsg)
	// EmitAs is Emit with another submission id than the turn's, for what the engine does
	// by itself during a turn. "" is the turn's id.
	EmitAs(submission string, m protocol.EventMsg)
	// Ask asks for the approval of a subject: a [approval.Command], a [approval.Patch], or another one. It always
	// returns. Once ctx has ended it returns [elicit.Abort], but for what the turn does not wait for: see
	// [approval.Effect].
	Ask(ctx context.Context, s approval.Subject) elicit.Outcome
	// Elicit asks the client a question of another party, such as an MCP server, and returns
	// the result of elicitation/create for it. [elicit.ReadError] explains its errors.
	Elicit(ctx context.Context, f *approval.Foreign) (json.RawMessage, error)
}

// ConfigError means that a conversation cannot start with its configuration: a file cannot
// be parsed, or a profile or provider does not exist.
type ConfigError struct {
	// Err is the fault, which names the key or the file.
	Err error
}

// Error implements error.
func (e *ConfigError) Error() string { return fmt.Sprintf("configuration: %v", e.Err) }

// Unwrap returns the fault itself.
func (e *ConfigError) Unwrap() error { return e.Err }

// TurnError means that a turn failed. The [protocol.Error] event with the same message has
// been emitted.
type TurnError struct {
	// Message is for the user.
	Message string
}

// Error implements error.
func (e *TurnError) Error() string { return e.Message }

// AbortError means that a turn was ended early. The [protocol.TurnAborted] event has been
// emitted.
type AbortError struct {
	// Reason is the event's reason; "" means [protocol.AbortInterrupted].
	Reason string
	// Cause is why it ended: the cause of the turn's context, or the answer to an approval.
	Cause error
}

// Error implements error.
func (e *AbortError) Error() string {
	reason := e.complete().Reason
	if e.Cause == nil {
		return "turn " + string(reason)
	}
	return fmt.Sprintf("turn %s: %v", reason, e.Cause)
}

// complete returns the error with a reason. e may be nil.
func (e *AbortError) complete() *AbortError {
	switch {
	case e == nil:
		return &AbortError{Reason: protocol.AbortInterrupted}
	case e.Reason == "":
		return &AbortError{Reason: protocol.AbortInterrupted, Cause: e.Cause}
	}
	return e
}

// Unwrap returns the cause.
func (e *AbortError) Unwrap() error { return e.Cause }
