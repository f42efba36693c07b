package approve

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Record appends every question with its decision, and what ran, to a writer, one JSON object a
// line. It is safe for concurrent use. A nil Record does nothing.
type Record struct {
	mu     sync.Mutex
	w      io.Writer
	server string // the beginning of all ids
	last   int    // the number of the last id
}

// NewRecord returns a record that writes to w, or nil if w is nil.
func NewRecord(w io.Writer) *Record {
	if w == nil {
		return nil
	}
	return &Record{w: w, server: rand.Text()[:12]}
}

// write appends a line. A decision gets an id, which it returns. Strict refuses text that is not UTF-8.
func (r *Record) write(l record.Line, strict bool) (id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.Event == record.Decided {
		r.last++
		l.DecisionID = fmt.Sprintf("%s-%d", r.server, r.last)
	}
	l.Time = time.Now().UTC()
	line, err := l.Append(nil, strict)
	if err == nil {
		_, err = r.w.Write(append(line, '\n'))
	}
	if err != nil {
		return "", err
	}
	return l.DecisionID, nil
}

// evidence is what is known of how a decision was made.
type evidence struct {
	automatic string // what clients answered by themselves
	waited    time.Duration
}

// add appends a question with its decision, and returns its id.
func (r *Record) add(a *approval.Request, d approval.Decision, e evidence) (id string, err error) {
	if r == nil {
		return "", nil
	}
	subject, err := subjectOf(a)
	if err != nil {
		return "", err
	}
	l := record.Line{
		Event: record.Decided, Thread: a.Thread.ID, Turn: turnOf(a), Call: a.Call(), Principal: a.Thread.Principal, Subject: subject,
		Verdict: record.Verdict{
			Decision: string(d.Decision), By: string(d.By), Rule: d.Rule, RuleWords: d.RuleWords,
			Reason: string(d.Reason), Detail: d.Detail, Feedback: d.Feedback, Automatic: e.automatic, Waited: e.waited.Milliseconds(),
		},
	}
	approves := d.Decision.Approves()
	if !approves {
		l.Bound()
	}
	return r.write(l, approves)
}

// turnOf returns the id of the turn that asks.
func turnOf(a *approval.Request) string {
	turn := ""
	switch m := a.Event.(type) {
	case protocol.ExecApprovalRequest:
		turn = m.TurnID
	case protocol.PatchApprovalRequest:
		turn = m.TurnID
	}
	return cmp.Or(turn, a.Turn)
}

// subjectOf returns what a question is about. The error says that JSON cannot have it.
func subjectOf(a *approval.Request) (s record.Subject, err error) {
	s = record.Subject{Reach: a.Question.Reach}
	switch m := a.Event.(type) {
	case protocol.ExecApprovalRequest:
		s.Kind, s.Command, s.Cwd = record.KindCommand, m.Command, m.Cwd
	case protocol.PatchApprovalRequest:
		s.Kind, s.Cwd, s.Changes = record.KindPatch, m.Cwd, record.ChangesOf(m.Changes, true)
	case protocol.AccessRequest:
		s.Kind, s.Access, s.Client = record.KindAccess, &m.Access, m.Client
	default:
		s.Kind = record.KindOther
		s.Question, err = protocol.AppendEvent(nil, m)
	}
	return s, err
}

// calls are the calls of one thread that were approved or run. The mutex of the board guards them.
type calls struct {
	approved map[string]string // the ids of decisions that no call has used, by call
	running  map[string]string // the ids of the decisions of running calls, "" if nobody was asked
}

// keep keeps the decision about a call until the call begins.
func (b *Board) keep(r *approval.Request, d *approval.Decision, id string) {
	call := r.Call()
	if call == "" || id == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !d.Decision.Approves() {
		delete(b.calls.approved, call)
		return
	}
	if b.calls.approved == nil {
		b.calls.approved = map[string]string{}
	}
	b.calls.approved[call] = id
}

// Note records the beginning or the end of a call, or a refusal: the line that [turnlog.LineOf] returns for
// an event of a turn. It must be called before others receive the event: an engine that reports a beginning
// before the call runs then has it recorded before.
func (b *Board) Note(thread approval.Thread, turn string, line record.Line) {
	if b.options.Record == nil || line.Event == "" {
		return
	}
	line.Thread, line.Principal, line.Turn = thread.ID, thread.Principal, turn
	b.mu.Lock()
	switch line.Event {
	case record.Begins:
		line.DecisionID = b.calls.approved[line.Call]
		delete(b.calls.approved, line.Call)
		if b.calls.running == nil {
			b.calls.running = map[string]string{}
		}
		b.calls.running[line.Call] = line.DecisionID
	case record.Ends:
		line.DecisionID = b.calls.running[line.Call]
		delete(b.calls.running, line.Call)
	}
	b.mu.Unlock()
	b.write(line)
}

// EndTurn forgets the approvals that no call of the turn has used, and records the calls whose ends were not
// reported.
func (b *Board) EndTurn(thread approval.Thread, turn string) {
	b.mu.Lock()
	left := b.calls.running
	b.calls = calls{}
	b.mu.Unlock()
	for _, call := range slices.Sorted(maps.Keys(left)) {
		b.write(record.Line{
			Event: record.Ends, DecisionID: left[call], Thread: thread.ID, Principal: thread.Principal, Turn: turn, Call: call,
			Outcome: record.Outcome{Words: "the turn ended before the end was reported"},
		})
	}
}

// write records a line that is not a question's.
func (b *Board) write(line record.Line) {
	line.Bound()
	err := guard(b.log, "Record", func() error {
		_, err := b.options.Record.write(line, false)
		return err
	})
	if err != nil {
		b.log.Warn("not recorded", "event", string(line.Event), "thread", line.Thread, "call", line.Call, "error", err)
	}
}

// Automatic returns what clients answered by themselves, from the lines of a [Record]: the newest
// of each kind, with its time, at most n of them, as lines for a person.
func Automatic(lines []byte, n int) (found []string) {
	seen := map[string]bool{}
	all := bytes.Split(lines, []byte("\n"))
	for i := len(all) - 1; i >= 0 && len(found) < n; i-- {
		var r struct {
			Time      time.Time       `json:"time"`
			By        string          `json:"by"`
			Decision  elicit.Decision `json:"decision"`
			Automatic string          `json:"automatic"`
		}
		if json.Unmarshal(all[i], &r, jsontext.AllowInvalidUTF8(true)) != nil || r.Automatic == "" {
			continue
		}
		kind := withoutDigits(r.Automatic)
		if !seen[kind] {
			seen[kind] = true
			found = append(found, elicit.OneLine(fmt.Sprintf("%s: %s (%s, by %s)", r.Time.Format(time.DateTime), r.Automatic, r.Decision, r.By), 500))
		}
	}
	return found
}

// withoutDigits takes the numbers out of a text, so that answers of one kind are alike.
func withoutDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, text)
}

// Stamp returns a line of a [Record] that another process wrote, without its end, with the time and
// the principal of the caller, who does not trust that process. The error says what is no such
// line.
func Stamp(line []byte, now time.Time, principal string) ([]byte, error) {
	r, err := record.Parse(line)
	switch {
	case err != nil:
		return nil, fmt.Errorf("not a line of the record: %w", err)
	case !slices.Contains([]record.Event{record.Decided, record.Begins, record.Ends}, r.Event):
		return nil, errors.New("not a line of the record: no event")
	case (r.Event == record.Decided) != (r.Decision != "" && r.By != ""):
		return nil, errors.New("not a line of the record: no decision, or one of another event")
	}
	if r.DecisionID != "" { // those of one user must not be those of another
		r.DecisionID = principal + "/" + r.DecisionID
	}
	r.Time, r.Principal = now.UTC(), principal
	return r.Append(nil, false)
}
