package board

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
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
	Automatic string           `json:"automatic,omitzero"`
}

// add appends a question with its decision. Automatic says what clients answered by themselves.
func (r *Record) add(a *approval.Request, d approval.Decision, approver, automatic string) error {
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
		Decision: d.Decision, By: d.By, Approver: approver, With: d.With, Rule: d.Rule, RuleWords: d.RuleWords, Reason: d.Reason, Feedback: d.Feedback, Detail: d.Detail, Automatic: automatic,
	}, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.w.Write(append(line, '\n'))
	return err
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
		kind := digits.Replace(r.Automatic)
		if !seen[kind] {
			seen[kind] = true
			found = append(found, elicit.OneLine(fmt.Sprintf("%s: %s (%s, by %s)", r.Time.Format(time.DateTime), r.Automatic, r.Decision, r.By), 500))
		}
	}
	return found
}

// digits takes the numbers out of a text, so that answers of one kind are alike.
var digits = strings.NewReplacer("0", "", "1", "", "2", "", "3", "", "4", "", "5", "", "6", "", "7", "", "8", "", "9", "")

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
