package elicit

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/hosts"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// A Brief is what a question says in place of its Message to a client that is known to cut
// messages. What a person must see comes first: how far an approval goes. Only the maker of a
// question knows that, so a person can only decline there what has no Brief, no Schema, and a
// longer Message.
type Brief struct {
	// Lines say what is asked: at most four, or three if Partial is set, of at most 72 columns.
	Lines []string
	// Confined takes the place of the first line while Question.Always offers a rule, which lets
	// commands run in the sandbox. If it is empty, no rule is offered.
	Confined string
	// Partial means that Lines do not show all that is asked. Then neither an approval for the
	// session nor a lasting rule is offered.
	Partial bool
	// Reason is a line that is shown if there is room.
	Reason string
	// Home is the person's home folder, which the words of a rule have as ~. Default: none.
	Home string
}

func (c Client) isBrief() bool { return hosts.CutsMessages(c.Name) }

// Cut reports whether the message does not show all of q, or a client that is known to cut messages
// would not.
func (q *Question) Cut() bool { return q.Partial || q.asBrief().Partial }

// declineOnly is a form that no approval follows.
const declineOnly = `{"type":"object","properties":{"decision":{"type":"string","title":"Decision","enum":["denied",` +
	`"abort"]}},"required":["decision"]}`

func (q *Question) asBrief() *Brief {
	if q.Brief != nil {
		return q.Brief
	}
	return briefOf(q.Message)
}

// brief returns q as it is asked in a host that cuts messages. The form shows decisions if
// shows is true.
func (q *Question) brief(o *Options, shows bool) *Question {
	b := q.asBrief()
	asked := *q
	if !shows || b.Partial || b.Confined == "" {
		asked.Always = nil
	}
	lines := slices.Clone(b.Lines)
	if b.Partial {
		asked.Once = true
		where := "Not shown whole"
		if q.Brief == nil && q.Schema == nil {
			asked.Schema, where = json.RawMessage(declineOnly), "Only to be declined"
		}
		if o.resolved().Elsewhere != "" {
			where += "; it is " + o.Elsewhere
		}
		lines = append(lines, plain.Within(plain.Line(where+"."), plain.MaxColumns))
	}
	if asked.Always != nil {
		words := asked.Always.Words
		if b.Home != "" {
			words = strings.NewReplacer(" in "+b.Home+"/", " in ~/", " below "+b.Home+"/", " below ~/").Replace(words)
		}
		rule := plain.Fold("Always: " + plain.OneLine(words, 0))
		if len(rule) > plain.MaxLines-len(lines) {
			asked.Always = nil
		} else {
			lines = append(lines, rule...)
			lines[0] = b.Confined
		}
	}
	if b.Reason != "" && len(lines) < plain.MaxLines {
		lines = append(lines, b.Reason)
	}
	asked.Message = strings.Join(lines, "\n")
	return &asked
}

// briefOf returns the brief form of a message of which nothing else is known.
func briefOf(message string) *Brief {
	var lines []string
	var rest strings.Builder // after two lines
	for line := range strings.SplitSeq(message, "\n") {
		for i, part := range plain.Fold(strings.ReplaceAll(line, "\t", "    ")) {
			if i == 0 && rest.Len() > 0 {
				rest.WriteByte(' ')
			}
			if len(lines) >= 2 {
				rest.WriteString(part)
			}
			lines = append(lines, part)
		}
	}
	if len(lines) <= plain.MaxLines {
		return &Brief{Lines: lines, Confined: lines[0]}
	}
	if last := strings.Join(lines[plain.MaxLines-1:], " "); plain.Columns(last) <= plain.MaxColumns {
		return &Brief{Lines: append(lines[:plain.MaxLines-1:plain.MaxLines-1], last), Confined: lines[0]}
	}
	return &Brief{Lines: append(lines[:2:2], plain.Omit(rest.String(), "", plain.MaxColumns)), Partial: true}
}
