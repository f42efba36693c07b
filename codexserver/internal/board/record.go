package board

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Record appends every question with its decision to a writer, one JSON object a line. It
// is safe for concurrent use. A nil Record does nothing.
type Record struct {
	mu sync.Mutex
	w  io.Writer
}

// NewRecord returns a record that writes to w, or nil if w is nil.
func NewRecord(w io.Writer) *Record {
	if w == nil {
		return nil
	}
	return &Record{w: w}
}

type recordLine struct {
	Time      time.Time        `json:"time"`
	Thread    string           `json:"threadId"`
	Principal string           `json:"principal,omitzero"`
	Question  jsontext.Value   `json:"question"`
	Decision  elicit.Decision  `json:"decision"`
	By        approval.Decider `json:"by"`
	Approver  string           `json:"approver,omitzero"`
	With      string           `json:"with,omitzero"`
	Rule      int              `json:"rule,omitzero"`
	RuleWords string           `json:"ruleWords,omitzero"`
	Reason    elicit.Reason    `json:"reason,omitzero"`
	Feedback  string           `json:"feedback,omitzero"`
	Detail    string           `json:"detail,omitzero"`
}

func (r *Record) add(a *approval.Request, d approval.Decision, approver string) error {
	if r == nil {
		return nil
	}
	question, err := protocol.AppendEvent(nil, a.Event)
	if err != nil {
		return err
	}
	if d.By != approval.ByApprover {
		approver = ""
	}
	line, err := json.Marshal(recordLine{
		Time: time.Now().UTC(), Thread: a.Thread.ID, Principal: a.Thread.Principal, Question: question,
		Decision: d.Decision, By: d.By, Approver: approver, With: d.With, Rule: d.Rule, RuleWords: d.RuleWords, Reason: d.Reason, Feedback: d.Feedback, Detail: d.Detail,
	}, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.w.Write(append(line, '\n'))
	return err
}

// Stamp returns a line of a [Record] that another process wrote, without its end, with the time and
// the principal of the caller, who does not trust that process. Only the approver may be named as
// such. The error says what is no such line.
func Stamp(line []byte, now time.Time, principal, approver string) ([]byte, error) {
	var r recordLine
	if err := json.Unmarshal(line, &r, json.RejectUnknownMembers(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, fmt.Errorf("not a line of the record: %w", err)
	}
	if r.Question.Kind() != '{' || r.Decision == "" || r.By == "" {
		return nil, errors.New("not a line of the record: no question, or no decision")
	}
	if r.Approver != "" && r.Approver != approver {
		return nil, fmt.Errorf("%q is no approver of %s", r.Approver, principal)
	}
	r.Time, r.Principal = now.UTC(), principal
	return json.Marshal(r, jsontext.AllowInvalidUTF8(true))
}
