package rollout

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Kind is the kind of a [Record].
type Kind string

// The kinds of records.
const (
	// TurnBegins comes before the message with which a turn begins.
	TurnBegins Kind = "turn_begins"
	// TurnContinues says that another process continues the turn.
	TurnContinues Kind = "turn_continues"
	// TurnEnds says how a turn has ended.
	TurnEnds Kind = "turn_ends"
	// MessageComes comes before a further message of the user to a running turn.
	MessageComes Kind = "message"
	// ResponseEnds comes after the items of a response of the model. Without it some of them
	// may be missing.
	ResponseEnds Kind = "response_ends"
	// CallAsks comes before a question about a call, CallApproved and CallRefused after its
	// decision.
	CallAsks     Kind = "call_asks"
	CallApproved Kind = "call_approved"
	CallRefused  Kind = "call_refused"
	// CallBegins comes before a call does anything.
	CallBegins Kind = "call_begins"
)

// Record is what a later process must know to continue a turn. It is written before what it
// announces happens, and after what it reports. Codex, and versions of this program that do
// not know records, ignore these lines.
type Record struct {
	Kind Kind `json:"kind"`
	// Turn is the key of the turn, "" for one that no other process continues.
	Turn string `json:"turn,omitzero"`
	// PID is the process that begins or continues the turn, and Mark the mark of what it starts.
	PID  int    `json:"pid,omitzero"`
	Mark string `json:"mark,omitzero"`
	// Used is what the conversation has used when the turn begins. MaxTokens is the budget of
	// the turn, and Schema that of its answer.
	Used      *protocol.TokenUsage `json:"used,omitzero"`
	MaxTokens int64                `json:"max_tokens,omitzero"`
	Schema    jsontext.Value       `json:"schema,omitzero"`
	// Call is the id of a call of the model.
	Call string `json:"call,omitzero"`
	// Command and Cwd are what begins, of a command; Tool is the name of another tool.
	Command []string `json:"command,omitzero"`
	Cwd     string   `json:"cwd,omitzero"`
	Tool    string   `json:"tool,omitzero"`
	// Files are what a patch writes.
	Files []File `json:"files,omitzero"`
	// Output is what the model is told of a call that was refused.
	Output string `json:"output,omitzero"`
	// Aborts is true for a refusal that ends the turn.
	Aborts bool `json:"aborts,omitzero"`
	// Cut is why the provider ended a response early.
	Cut string `json:"cut,omitzero"`
	// End is how the turn has ended.
	End *End `json:"end,omitzero"`
}

// File is a file that a patch writes, with the SHA-256 of its content before and after in hex,
// "" for no file.
type File struct {
	Path   string `json:"path"`
	Before string `json:"before,omitzero"`
	After  string `json:"after,omitzero"`
}

// End is how a turn has ended.
type End struct {
	// Error is why it failed, and Aborted why it was aborted.
	Error   string `json:"error,omitzero"`
	Aborted string `json:"aborted,omitzero"`
	// Message is the last message, nil without one, and Incomplete why it is not whole.
	Message    *string `json:"message,omitzero"`
	Incomplete string  `json:"incomplete,omitzero"`
}

// Turn is a turn as its records describe it.
type Turn struct {
	// First is its first record.
	First Record
	// Begun is when it began, and Heard is the time of the last line of the file.
	Begun, Heard time.Time
	// Marks are those of the processes that ran it, and PID is the last one.
	Marks []string
	PID   int
	// Continued is how often it was continued after a process had ended in it, unless the turn only waited for an
	// answer then. Requests is how many requests to the model it made.
	Continued, Requests int
	// Items is how many of the last items of the rollout belong to it, and Rest is how many
	// of these come after the last whole response. Cut is why the provider cut that off.
	Items, Rest int
	Cut         string
	// Calls are the states of calls that have no answer.
	Calls map[string]*Call
	// End is how it has ended, nil for one that has not.
	End *End
	// Foreign is true if another program has written to the conversation after the turn began,
	// or a later turn has begun.
	Foreign bool

	lines lines // that were read
}

// lines are what a reader knows of the lines of a turn.
type lines struct {
	from, whole int  // items of the rollout before it, and until the last whole response
	said        int  // messages of the user that are announced and did not come
	asking      bool // the last one of the turn's progress is a question
}

// Call is the state of a call of the model, by its records.
type Call struct {
	// Begins is what has begun, nil for nothing.
	Begins *Record
	// Asks is when a question about it was asked that is not decided. After Begins it is
	// about running it again outside of the sandbox.
	Asks time.Time
	// Refused is the decision against it, nil without one.
	Refused *Record
}

// Record appends a record. With durable it survives a crash of the system when Record returns,
// and is in the store.
func (w *Writer) Record(r Record, durable bool) error {
	if err := w.append(protocol.RolloutRecord, func(b []byte) ([]byte, error) { return appendJSON(b, r) }); err != nil || !durable {
		return err
	}
	f, _, err := w.open()
	if err != nil {
		return fmt.Errorf("rollout: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("rollout: %w", err)
	}
	return w.sync()
}

// maxTurns is how many of the last turns are kept.
const maxTurns = 16

// Turn returns the turn with a key, or nil. It may have ended.
func (r *Rollout) Turn(key string) *Turn {
	for _, t := range r.Turns {
		if key != "" && t.First.Turn == key {
			return t
		}
	}
	return nil
}

// Open returns the last turn if it has not ended, or nil.
func (r *Rollout) Open() *Turn {
	if n := len(r.Turns); n > 0 && r.Turns[n-1].End == nil && !r.Turns[n-1].Foreign {
		return r.Turns[n-1]
	}
	return nil
}

// now returns the turn to which the next line belongs, or nil.
func (r *reader) now() *Turn { return r.Open() }

// record reads a record.
func (r *reader) record(payload jsontext.Value, at time.Time) error {
	var rec Record
	if err := json.Unmarshal(payload, &rec); err != nil {
		return err
	}
	t := r.now()
	if rec.Kind == TurnBegins || rec.Kind == TurnEnds && (t == nil || t.First.Turn != rec.Turn) {
		for _, old := range r.Turns {
			old.Foreign = old.Foreign || old.End == nil
		}
		t = &Turn{First: rec, PID: rec.PID, Begun: at, Heard: at, lines: lines{from: r.all(), whole: r.all(), said: 1}, Calls: map[string]*Call{}}
		if rec.Mark != "" {
			t.Marks = []string{rec.Mark}
		}
		if r.Turns = append(r.Turns, t); len(r.Turns) > maxTurns {
			r.Turns = r.Turns[1:]
		}
	}
	if t == nil {
		return nil
	}
	call := t.Calls[rec.Call]
	if call == nil && rec.Call != "" {
		call = &Call{}
		t.Calls[rec.Call] = call
	}
	waited := t.lines.asking
	t.lines.asking = rec.Kind == CallAsks
	switch rec.Kind {
	case TurnContinues:
		if !waited { // otherwise an operator may have ended the process, but the turn has not
			t.Continued++
		}
		t.PID = rec.PID
		if rec.Mark != "" {
			t.Marks = append(t.Marks, rec.Mark)
		}
	case TurnEnds:
		t.End = rec.End
	case MessageComes:
		t.lines.said++
	case ResponseEnds:
		t.lines.whole, t.Cut = r.all(), rec.Cut
		clear(t.Calls)
	}
	if call == nil {
		return nil
	}
	switch rec.Kind {
	case CallAsks:
		if call.Refused = nil; call.Asks.IsZero() { // otherwise it is asked again
			call.Asks = at
		}
	case CallApproved:
		call.Asks, call.Refused = time.Time{}, nil
	case CallRefused:
		call.Asks, call.Refused = time.Time{}, &rec
	case CallBegins:
		call.Begins, call.Asks = &rec, time.Time{}
	}
	return nil
}

// all returns how many items the rollout has until now, since the last compaction.
func (r *reader) all() int { return r.items.left + len(r.items.all) }

// answered removes the state of a call that an item answers.
func (r *reader) answered(raw jsontext.Value) {
	t := r.now()
	if t == nil || len(t.Calls) == 0 || !bytes.Contains(raw[:min(len(raw), 64)], []byte("_output")) {
		return
	}
	var answer struct {
		CallID string `json:"call_id"`
	}
	if stdjson.Unmarshal(raw, &answer) == nil {
		delete(t.Calls, answer.CallID)
	}
}

// compacted moves the turn to the end of the items that replaced the others.
func (r *reader) compacted() {
	if t := r.now(); t != nil {
		t.lines.from, t.lines.whole = 0, r.all()
	}
}

// said counts a message of the user. One that no record announces is another program's.
func (r *reader) said() {
	if t := r.now(); t != nil {
		t.lines.said--
		t.Foreign = t.lines.said < 0
	}
}

// finish computes what depends on the whole file.
func (r *reader) finish(last time.Time) {
	for _, t := range r.Turns {
		t.Heard = last
		t.Items = max(r.all()-t.lines.from, 0)
		t.Rest = max(r.all()-t.lines.whole, 0)
	}
}
