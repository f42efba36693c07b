package rollout

import (
	"bytes"
	stdjson "encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json/jsontext"
)

// The beginning and the end of a turn are events in the file, as in Codex's. They are no part of
// [Rollout.Events].

// maxTurns is how many of the last turns are kept.
const maxTurns = 16

// Turn is a turn as the file shows it.
type Turn struct {
	// ID is what its beginning names it. One that continues another one has the same, and is a part of it.
	ID string
	// Said is true when a message of the user came after its beginning.
	Said bool
	// Items is how many of the last items of the rollout came after its beginning.
	Items int
	// End is its end: a [protocol.TaskComplete], a [protocol.TurnAborted], or a [protocol.Error] for a turn
	// that failed. It is nil for a turn that has not ended.
	End protocol.EventMsg

	from int // items of the rollout before it
}

// Last returns the last turn, or nil.
func (r *Rollout) Last() *Turn {
	if len(r.Turns) == 0 {
		return nil
	}
	return &r.Turns[len(r.Turns)-1]
}

// event reads an event. Those that begin or end a turn are no part of [Rollout.Events].
func (r *reader) event(payload jsontext.Value) error {
	kind, _, _ := bytes.Cut(payload[:min(len(payload), 64)], []byte(","))
	last := r.Last()
	switch string(bytes.TrimSuffix(kind, []byte("}"))) {
	case `{"type":"user_message"`:
		if last != nil {
			last.Said = true
		}
	case `{"type":"token_count"`, `{"type":"task_started"`, `{"type":"task_complete"`, `{"type":"turn_aborted"`,
		`{"type":"error"`:
		m, err := protocol.ParseEvent(stdjson.RawMessage(payload))
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case protocol.TokenCount:
			if m.Info != nil {
				r.Usage = m.Info
			}
		case protocol.TaskStarted:
			if last == nil || last.End != nil || last.ID != m.TurnID {
				r.Turns = append(r.Turns, Turn{ID: m.TurnID, from: r.all()})
				r.Turns = r.Turns[max(len(r.Turns)-maxTurns, 0):]
			}
			return nil
		default:
			if last != nil && last.End == nil {
				last.End = m
			}
			if _, aborted := m.(protocol.TurnAborted); !aborted { // which the past shows
				return nil
			}
		}
	}
	r.events.add(payload, maxEvents)
	return nil
}

// all returns how many items the rollout has until now, since the last compaction.
func (r *reader) all() int { return r.items.left + len(r.items.all) }
