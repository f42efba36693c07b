package record

import (
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Event is what a line is about.
type Event string

// The events.
const (
	Decided Event = "decided"
	Begins  Event = "begins"
	Ends    Event = "ends"
	// Overruled is that a person overruled a denial. It is no decision: what follows from it has one of its own.
	Overruled Event = "overruled"
)

// Line is one line of the record. Its members are in the order of the file: [Log] reads the first.
type Line struct {
	Event Event     `json:"event"`
	Time  time.Time `json:"time"`
	// DecisionID is the id of the decision, also of what it allowed; "" if nobody was asked.
	DecisionID string `json:"decisionId,omitzero"`
	Thread     string `json:"threadId"`
	Turn       string `json:"turnId,omitzero"`
	Call       string `json:"callId,omitzero"`
	// Server is the id of the server that writes a beginning or an end, or whose beginning an end is for; "" without a
	// [Log].
	Server string `json:"serverId,omitzero"`
	// Principal is the user whose thread it is, "" if the server has one user.
	Principal string `json:"principal,omitzero"`

	approval.Facts
	Verdict
	Outcome
}

// Verdict is how something was decided.
type Verdict struct {
	Decision string `json:"decision,omitzero"`
	// By is who decided.
	By string `json:"by,omitzero"`
	// Rule is the number of the rule that was kept with the decision, and RuleWords what it says.
	Rule      int    `json:"rule,omitzero"`
	RuleWords string `json:"ruleWords,omitzero"`
	Reason    string `json:"reason,omitzero"`
	Detail    string `json:"detail,omitzero"`
	Feedback  string `json:"feedback,omitzero"`
	// Automatic is what clients answered by themselves.
	Automatic string `json:"automatic,omitzero"`
	// Waited is how long the question was open, in milliseconds.
	Waited int64 `json:"waitedMs,omitzero"`
}

// Outcome is how something ended.
type Outcome struct {
	// Exit is the exit status of a command. Of the rest it is 0 or, if it failed, 1. Nil means that
	// the end was not reported.
	Exit  *int   `json:"exit,omitzero"`
	Took  int64  `json:"tookMs,omitzero"`
	Words string `json:"words,omitzero"`
	// Hosts are those that a command in the sandbox has reached.
	Hosts []string `json:"hosts,omitzero"`
}

// The bounds of a line that no person has approved, in bytes: a model can make any number of them.
const (
	maxCommand  = 64 << 10
	maxQuestion = 64 << 10
	maxChanges  = 64 << 10 // of paths and diffs
)

// Bound shortens what a model may have made long. The text says so.
func (l *Line) Bound() {
	room := maxCommand
	for i, word := range l.Command {
		if room -= len(word); room < 0 {
			cut := text.Brief(word, max(0, room+len(word)))
			l.Command = append(slices.Clone(l.Command[:i]), cut, "[the rest is left out]")
			break
		}
	}
	if len(l.Question) > maxQuestion {
		// A cut is of whole characters.
		l.Question, _ = jsontext.AppendQuote(nil, text.Brief(string(l.Question), maxQuestion))
	}
	room = maxChanges
	for i := range l.Changes {
		c := l.Changes[i]
		if room -= len(c.Path) + len(c.MoveTo); room < 0 {
			l.Changes, l.MoreChanges = l.Changes[:i], len(l.Changes)-i
			return
		}
		l.Changes[i].Diff = text.Brief(c.Diff, room)
		room -= len(l.Changes[i].Diff)
	}
}

// Parse reads a line. It refuses members that no line has.
func Parse(text []byte) (l Line, err error) {
	err = json.Unmarshal(text, &l, json.RejectUnknownMembers(true), jsontext.AllowInvalidUTF8(true))
	return l, err
}
