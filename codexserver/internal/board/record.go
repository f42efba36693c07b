package board

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Record appends every question with its decision, and every effect, to a writer, one JSON object a
// line. It is safe for concurrent use. A nil Record does nothing.
type Record struct {
	mu     sync.Mutex
	w      io.Writer
	server string // the beginning of all ids
	last   int    // the number of the last id
	missed int    // lines that could not be written
}

// NewRecord returns a record that writes to w, or nil if w is nil.
func NewRecord(w io.Writer) *Record {
	if w == nil {
		return nil
	}
	return &Record{w: w, server: rand.Text()[:12]}
}

// write appends a line, which gets an id if it needs one. It returns the id.
func (r *Record) write(l audit.Line) (id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.Effect == "" || l.Effect == audit.Begins {
		r.last++
		l.ID = fmt.Sprintf("%s-%d", r.server, r.last)
	}
	l.Time, l.Missed = time.Now().UTC(), r.missed
	line, err := l.Append(nil)
	if err == nil {
		_, err = r.w.Write(append(line, '\n'))
	}
	if err != nil {
		r.missed++
		return "", err
	}
	r.missed = 0
	return l.ID, nil
}

// evidence is what is known of how a decision was made.
type evidence struct {
	automatic string // what clients answered by themselves
	waited    time.Duration
}

// add appends a question with its decision, and returns its id.
func (r *Record) add(a *approval.Request, d approval.Decision, approver string, e evidence) (id string, err error) {
	if r == nil {
		return "", nil
	}
	question, err := protocol.AppendEvent(nil, a.Event)
	if err != nil { // as for text that is not UTF-8
		r.mu.Lock()
		r.missed++
		r.mu.Unlock()
		return "", err
	}
	if d.By != approval.ByApprover {
		approver = ""
	}
	return r.write(audit.Line{
		Thread: a.Thread.ID, Principal: a.Thread.Principal, Question: question,
		Decision: string(d.Decision), By: string(d.By), Approver: approver, Rule: d.Rule, RuleWords: d.RuleWords,
		Reason: string(d.Reason), Feedback: d.Feedback, Detail: d.Detail, Automatic: e.automatic,
		Waited: e.waited.Milliseconds(), Covers: covers(a, d),
	})
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
// the principal of the caller, who does not trust that process. Only the approver may be named as
// such. The error says what is no such line.
func Stamp(line []byte, now time.Time, principal, approver string) ([]byte, error) {
	r, err := audit.Parse(line, true)
	if err != nil {
		return nil, fmt.Errorf("not a line of the record: %w", err)
	}
	decided := r.Question.Kind() == '{' && r.Decision != "" && r.By != "" && r.Effect == ""
	effect := r.Question == nil && r.Decision == "" && r.By == "" && slices.Contains([]audit.Effect{audit.Begins, audit.Ends, audit.Refused, audit.Changed}, r.Effect)
	switch {
	case !decided && !effect:
		return nil, errors.New("not a line of the record: no question, or no decision")
	case r.Approver != "" && r.Approver != approver:
		return nil, fmt.Errorf("%q is no approver of %s", r.Approver, principal)
	}
	// The gateway makes the chain. The ids of one user must not be those of another.
	r.Chain, r.Hash = nil, ""
	for _, id := range []*string{&r.ID, &r.DecidedBy, &r.Of} {
		if *id != "" {
			*id = principal + "/" + *id
		}
	}
	r.Time, r.Principal = now.UTC(), principal
	return r.Append(nil)
}
