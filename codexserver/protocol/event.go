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
	read, known := eventReaders[head.Type]
	if !known {
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

// eventReaders is read only.
var eventReaders = map[string]func([]byte) (EventMsg, error){
	SessionConfigured{}.EventType():             readAs[SessionConfigured],
	TaskStarted{}.EventType():                   readAs[TaskStarted],
	TaskComplete{}.EventType():                  readAs[TaskComplete],
	TurnAborted{}.EventType():                   readAs[TurnAborted],
	TokenCount{}.EventType():                    readAs[TokenCount],
	UserMessage{}.EventType():                   readAs[UserMessage],
	AgentMessage{}.EventType():                  readAs[AgentMessage],
	AgentMessageDelta{}.EventType():             readAs[AgentMessageDelta],
	AgentReasoning{}.EventType():                readAs[AgentReasoning],
	AgentReasoningDelta{}.EventType():           readAs[AgentReasoningDelta],
	AgentReasoningRawContent{}.EventType():      readAs[AgentReasoningRawContent],
	AgentReasoningRawContentDelta{}.EventType(): readAs[AgentReasoningRawContentDelta],
	AgentReasoningSectionBreak{}.EventType():    readAs[AgentReasoningSectionBreak],
	ExecApprovalRequest{}.EventType():           readAs[ExecApprovalRequest],
	PatchApprovalRequest{}.EventType():          readAs[PatchApprovalRequest],
	ExecCommandBegin{}.EventType():              readAs[ExecCommandBegin],
	ExecCommandOutputDelta{}.EventType():        readAs[ExecCommandOutputDelta],
	ExecCommandEnd{}.EventType():                readAs[ExecCommandEnd],
	PatchApplyBegin{}.EventType():               readAs[PatchApplyBegin],
	PatchApplyEnd{}.EventType():                 readAs[PatchApplyEnd],
	TurnDiff{}.EventType():                      readAs[TurnDiff],
	PlanUpdate{}.EventType():                    readAs[PlanUpdate],
	MCPToolCallBegin{}.EventType():              readAs[MCPToolCallBegin],
	MCPToolCallEnd{}.EventType():                readAs[MCPToolCallEnd],
	WebSearchBegin{}.EventType():                readAs[WebSearchBegin],
	WebSearchEnd{}.EventType():                  readAs[WebSearchEnd],
	ViewImageToolCall{}.EventType():             readAs[ViewImageToolCall],
	BackgroundEvent{}.EventType():               readAs[BackgroundEvent],
	StreamError{}.EventType():                   readAs[StreamError],
	Error{}.EventType():                         readAs[Error],
	ShutdownComplete{}.EventType():              readAs[ShutdownComplete],
}
