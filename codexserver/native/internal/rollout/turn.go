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

// Ran reports whether one of the last turns has an id.
func (r *Rollout) Ran(id string) bool {
	for i := range r.Turns {
		if r.Turns[i].ID == id {
			return true
		}
	}
	return false
}

// boundary reads an event that begins or ends a turn; ok is false for other events.
func (r *reader) boundary(payload jsontext.Value) (ok bool, err error) {
	kind, _, _ := bytes.Cut(payload[:min(len(payload), 64)], []byte(","))
	switch string(bytes.TrimSuffix(kind, []byte("}"))) {
	case `{"type":"user_message"`:
		if last := r.Last(); last != nil {
			last.Said = true
		}
		return false, nil
	case `{"type":"task_started"`, `{"type":"task_complete"`, `{"type":"turn_aborted"`, `{"type":"error"`:
	default:
		return false, nil
	}
	m, err := protocol.ParseEvent(stdjson.RawMessage(payload))
	if err != nil {
		return true, err
	}
	last := r.Last()
	switch m := m.(type) {
	case protocol.TaskStarted:
		if last != nil && last.End == nil && last.ID == m.TurnID {
			return true, nil
		}
		if r.Turns = append(r.Turns, Turn{ID: m.TurnID, from: r.all()}); len(r.Turns) > maxTurns {
			r.Turns = r.Turns[1:]
		}
		return true, nil
	case protocol.TurnAborted:
		ok = false // which the past shows
	default:
		ok = true
	}
	if last != nil && last.End == nil {
		last.End = m
	}
	return ok, nil
}

// all returns how many items the rollout has until now, since the last compaction.
func (r *reader) all() int { return r.items.left + len(r.items.all) }

// compacted moves the turn to the end of the items that replaced the others.
func (r *reader) compacted() {
	if last := r.Last(); last != nil {
		last.from = 0
	}
}

// finish computes what depends on the whole file.
func (r *reader) finish() {
	for i := range r.Turns {
		r.Turns[i].Items = max(r.all()-r.Turns[i].from, 0)
	}
}
