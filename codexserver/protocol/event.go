package protocol

import (
	stdjson "encoding/json"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// EventMsg is what happened in a conversation: one of the event types of this package, or
// a [RawEvent] of an unknown type. On the wire it is one flat object, with the type next to
// its members.
type EventMsg interface {
	// EventType is the event's type on the wire, such as "agent_message".
	EventType() string
}

// Event is an event with the id of its submission: the id of the tools/call request for a
// first turn, a counter for later turns, and "" outside of turns.
type Event struct {
	// ID is the submission's.
	ID string
	// Msg is what happened.
	Msg EventMsg
}

// RawEvent is an event of a type that this package does not know.
type RawEvent struct {
	// Type is the type on the wire.
	Type string
	// Raw is the whole flat object, type included.
	Raw stdjson.RawMessage
}

// EventType implements [EventMsg].
func (e RawEvent) EventType() string { return e.Type }

// AppendEvent appends the flat JSON form of m to b.
func AppendEvent(b []byte, m EventMsg) ([]byte, error) {
	if raw, ok := m.(RawEvent); ok {
		return append(b, raw.Raw...), nil
	}
	head, err := jsontext.AppendQuote(append(b, `{"type":`...), m.EventType())
	if err != nil {
		return b, fmt.Errorf("protocol: event type: %w", err)
	}
	out := appending(head)
	brace := len(out) // the object is written here without a copy, since it may be long; its brace becomes a comma
	if err := json.MarshalWrite(&out, m, json.Deterministic(true)); err != nil {
		return b, fmt.Errorf("protocol: event %s: %w", m.EventType(), err)
	}
	if len(out)-brace == len("{}") {
		return append(out[:brace], '}'), nil
	}
	out[brace] = ','
	return out, nil
}

// appending is a writer that appends to a slice.
type appending []byte

func (a *appending) Write(b []byte) (int, error) {
	*a = append(*a, b...)
	return len(b), nil
}

// ParseEvent reads the flat JSON form. An unknown type becomes a [RawEvent]
// that shares raw's bytes; unknown members of a known type are ignored.
func ParseEvent(raw []byte) (EventMsg, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("protocol: event: %w", err)
	}
	read := eventReader(head.Type)
	if read == nil {
		return RawEvent{Type: head.Type, Raw: raw}, nil
	}
	m, err := read(raw)
	if err != nil {
		return nil, fmt.Errorf("protocol: event %s: %w", head.Type, err)
	}
	return m, nil
}

func readAs[E EventMsg](raw []byte) (EventMsg, error) {
	var e E
	err := json.Unmarshal(raw, &e)
	return e, err
}

// eventReader returns the function that reads a type, nil for an unknown one.
func eventReader(name string) func([]byte) (EventMsg, error) {
	switch name {
	case SessionConfigured{}.EventType():
		return readAs[SessionConfigured]
	case TaskStarted{}.EventType():
		return readAs[TaskStarted]
	case TaskComplete{}.EventType():
		return readAs[TaskComplete]
	case TurnAborted{}.EventType():
		return readAs[TurnAborted]
	case TokenCount{}.EventType():
		return readAs[TokenCount]
	case UserMessage{}.EventType():
		return readAs[UserMessage]
	case AgentMessage{}.EventType():
		return readAs[AgentMessage]
	case AgentMessageDelta{}.EventType():
		return readAs[AgentMessageDelta]
	case AgentReasoning{}.EventType():
		return readAs[AgentReasoning]
	case AgentReasoningDelta{}.EventType():
		return readAs[AgentReasoningDelta]
	case AgentReasoningRawContent{}.EventType():
		return readAs[AgentReasoningRawContent]
	case AgentReasoningRawContentDelta{}.EventType():
		return readAs[AgentReasoningRawContentDelta]
	case AgentReasoningSectionBreak{}.EventType():
		return readAs[AgentReasoningSectionBreak]
	case ExecApprovalRequest{}.EventType():
		return readAs[ExecApprovalRequest]
	case PatchApprovalRequest{}.EventType():
		return readAs[PatchApprovalRequest]
	case ExecCommandBegin{}.EventType():
		return readAs[ExecCommandBegin]
	case ExecCommandOutputDelta{}.EventType():
		return readAs[ExecCommandOutputDelta]
	case ExecCommandEnd{}.EventType():
		return readAs[ExecCommandEnd]
	case PatchApplyBegin{}.EventType():
		return readAs[PatchApplyBegin]
	case PatchApplyEnd{}.EventType():
		return readAs[PatchApplyEnd]
	case TurnDiff{}.EventType():
		return readAs[TurnDiff]
	case PlanUpdate{}.EventType():
		return readAs[PlanUpdate]
	case MCPToolCallBegin{}.EventType():
		return readAs[MCPToolCallBegin]
	case MCPToolCallEnd{}.EventType():
		return readAs[MCPToolCallEnd]
	case WebSearchBegin{}.EventType():
		return readAs[WebSearchBegin]
	case WebSearchEnd{}.EventType():
		return readAs[WebSearchEnd]
	case ViewImageToolCall{}.EventType():
		return readAs[ViewImageToolCall]
	case BackgroundEvent{}.EventType():
		return readAs[BackgroundEvent]
	case StreamError{}.EventType():
		return readAs[StreamError]
	case ModelReroute{}.EventType():
		return readAs[ModelReroute]
	case Error{}.EventType():
		return readAs[Error]
	case ShutdownComplete{}.EventType():
		return readAs[ShutdownComplete]
	}
	return nil
}
