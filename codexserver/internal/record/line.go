package record

import (
	"maps"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
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

// Kind is the kind of what is asked about or runs.
type Kind string

// The kinds. KindOther is any other question, such as one of an MCP server.
const (
	KindCommand Kind = "command"
	KindPatch   Kind = "patch"
	KindTool    Kind = "tool"
	KindAccess  Kind = "access"
	KindHost    Kind = "host"
	KindOther   Kind = "other"
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
	// Server is the id of the server that writes a beginning or an end, or whose beginning an end is for; "" without a [Log].
	Server string `json:"serverId,omitzero"`
	// Principal is the user whose thread it is, "" if the server has one user.
	Principal string `json:"principal,omitzero"`

	Subject
	Verdict
	Outcome
}

// Subject is what is asked about or runs.
type Subject struct {
	Kind    Kind     `json:"kind,omitzero"`
	Command []string `json:"command,omitzero"`
	Cwd     string   `json:"cwd,omitzero"`
	// Host is a host that the command wants to reach.
	Host string `json:"host,omitzero"`
	// Changes are those of a patch, sorted by path. MoreChanges is how many are left out.
	Changes     []Change `json:"changes,omitzero"`
	MoreChanges int      `json:"moreChanges,omitzero"`
	// Tool is the server and the name of a tool.
	Tool string `json:"tool,omitzero"`
	// Access is what a conversation may do, for Client, the name of a client.
	Access *protocol.Access `json:"access,omitzero"`
	Client string           `json:"client,omitzero"`
	// Question is a question of [KindOther], as JSON, or the beginning of that text.
	Question jsontext.Value `json:"question,omitzero"`
	// Reach is what no sandbox confines, as the question says it.
	Reach string `json:"reach,omitzero"`
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

// Change is the change of one file.
type Change struct {
	Path string `json:"path"`
	// Kind is add, delete or update.
	Kind   string `json:"kind"`
	MoveTo string `json:"moveTo,omitzero"`
	Diff   string `json:"diff,omitzero"`
}

// The bounds of a line that no person has approved, in bytes: a model can make any number of them.
const (
	maxCommand  = 64 << 10
	maxQuestion = 64 << 10
	maxChanges  = 64 << 10 // of paths and diffs
)

// Bound shortens what a model may have made long. The text says so.
func (s *Subject) Bound() {
	room := maxCommand
	for i, word := range s.Command {
		if room -= len(word); room < 0 {
			s.Command = append(slices.Clone(s.Command[:i]), text.Brief(word, max(0, room+len(word))), "[the rest is left out]")
			break
		}
	}
	if len(s.Question) > maxQuestion {
		s.Question, _ = jsontext.AppendQuote(nil, text.Brief(string(s.Question), maxQuestion)) // a cut is of whole characters
	}
	room = maxChanges
	for i := range s.Changes {
		c := s.Changes[i]
		if room -= len(c.Path) + len(c.MoveTo); room < 0 {
			s.Changes, s.MoreChanges = s.Changes[:i], len(s.Changes)-i
			return
		}
		s.Changes[i].Diff = text.Brief(c.Diff, room)
		room -= len(s.Changes[i].Diff)
	}
}

// SubjectOf returns what an engine refused or allowed. With diffs it has the content of changes.
func SubjectOf(r *protocol.Refused, diffs bool) Subject {
	s := Subject{Kind: KindTool, Tool: r.Tool, Cwd: r.Cwd}
	switch {
	case r.Host != "":
		s.Kind, s.Host = KindHost, r.Host
	case len(r.Command) > 0:
		s.Kind, s.Command = KindCommand, r.Command
	case len(r.Changes) > 0:
		s.Kind, s.Changes = KindPatch, ChangesOf(r.Changes, diffs)
	}
	return s
}

// ChangesOf returns the changes of a patch. With diffs it has their content.
func ChangesOf(patch map[string]protocol.FileChange, diffs bool) (all []Change) {
	for _, path := range slices.Sorted(maps.Keys(patch)) {
		f := patch[path]
		c := Change{Path: path, Kind: f.Kind()}
		if to := f.MovedTo(); to != path {
			c.MoveTo = to
		}
		if diffs {
			c.Diff = f.Diff()
		}
		all = append(all, c)
	}
	return all
}

// Parse reads a line. It refuses members that no line has.
func Parse(text []byte) (l Line, err error) {
	err = json.Unmarshal(text, &l, json.RejectUnknownMembers(true), jsontext.AllowInvalidUTF8(true))
	return l, err
}
