package protocol

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"slices"

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

// Event is an event, Msg, with the ID of its submission: the id of the tools/call request for a
// first turn, a counter for later turns, and "" outside of turns.
type Event struct {
	ID  string
	Msg EventMsg
}

// RawEvent is an event of a Type that this package does not know.
type RawEvent struct {
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
	if delta, ok := m.(AgentMessageDelta); ok { // nearly all events of a turn
		if head, err = jsontext.AppendQuote(append(head, `,"delta":`...), delta.Delta); err != nil {
			return b, fmt.Errorf("protocol: event %s: %w", m.EventType(), err)
		}
		return append(head, '}'), nil
	}
	// the object is written here without a copy, since it may be long; its brace becomes a comma
	buf := bytes.NewBuffer(head)
	if err := json.MarshalWrite(buf, m, json.Deterministic(true)); err != nil {
		return b, fmt.Errorf("protocol: event %s: %w", m.EventType(), err)
	}
	out, brace := buf.Bytes(), len(head)
	if len(out)-brace == len("{}") {
		return append(out[:brace], '}'), nil
	}
	out[brace] = ','
	return out, nil
}

// events has one of each type that this package knows.
var events = []EventMsg{
	SessionConfigured{}, TaskStarted{}, TaskComplete{}, TurnAborted{}, TokenCount{}, UserMessage{},
	AgentMessage{}, AgentMessageDelta{}, AgentReasoning{}, AgentReasoningDelta{}, AgentReasoningRawContent{},
	AgentReasoningRawContentDelta{}, AgentReasoningSectionBreak{}, ExecApprovalRequest{}, PatchApprovalRequest{},
	ExecCommandBegin{}, ExecCommandOutputDelta{}, ExecCommandEnd{}, PatchApplyBegin{}, PatchApplyEnd{},
	TurnDiff{}, PlanUpdate{}, MCPToolCallBegin{}, MCPToolCallEnd{}, WebSearchBegin{}, WebSearchEnd{},
	ViewImageToolCall{},
	BackgroundEvent{}, StreamError{}, ModelReroute{}, Error{}, ShutdownComplete{},
}

// ParseEvent reads the flat JSON form. An unknown type becomes a [RawEvent]
// that shares raw's bytes; unknown members of a known type are ignored.
func ParseEvent(raw []byte) (EventMsg, error) {
	return parse(raw, "event", events, EventMsg.EventType, func(name string) EventMsg { return RawEvent{name, raw} })
}

// parse reads an object into a value of the known type that its member type names, or returns that of an unknown name.
func parse[T any](
	raw []byte, what string, known []T, nameOf func(T) string, unknown func(name string) T,
) (v T, err error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return v, fmt.Errorf("protocol: %s: %w", what, err)
	}
	i := slices.IndexFunc(known, func(one T) bool { return nameOf(one) == head.Type })
	if i < 0 {
		return unknown(head.Type), nil
	}
	read := reflect.New(reflect.TypeOf(known[i]))
	if err := json.Unmarshal(raw, read.Interface()); err != nil {
		return v, fmt.Errorf("protocol: %s %s: %w", what, head.Type, err)
	}
	return read.Elem().Interface().(T), nil
}
