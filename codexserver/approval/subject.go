package approval

import (
	"maps"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/go-json-experiment/json/jsontext"
)

// An Action is what an engine asks about, or does, or has refused or allowed by itself: a [Subject] or a [Tool].
type Action interface {
	// Facts returns the action as the record has it. With content they have the content of changes.
	Facts(content bool) Facts
	// Refusal returns what a result says of the action if it is refused: its kind, what it is, and the folder of a
	// command.
	Refusal() protocol.Refusal
}

// A Subject is what a question is about: a [Command], a [Patch], a [Network], an [Access], an [Overrule] or an [Other].
// All that differs between kinds of questions is in these methods, so a new kind is a type that has them.
type Subject interface {
	Action
	// Call returns the id of the call that the subject is about, "" for none.
	Call() string
	// Effect says what an approval has happen, and so what waits for it.
	Effect() Effect
	// Approver says who may approve it.
	Approver() Approver
	// Each reports whether rules have a person asked each time. Then no rule approves it, and none is offered.
	Each(r *Rules) bool
	// Rule returns what the lists of rules say, if they decide. If a person is asked each time, they only deny. It is
	// not called for what a [PersonAlone] approves.
	Rule(r *Rules, each bool) (out elicit.Outcome, decides bool)
	// Lasting returns what a rule is about that a person may accept with an approval, zero for none.
	Lasting() Lasting
	// Unasked is why no person is asked, so that without a rule it is denied; "" asks.
	Unasked() string
	// Complete returns the subject as a host asks about it. If a person is asked each time, no approval lasts.
	Complete(each bool) Subject
	// Question returns what a person is asked. Engine is the name of the engine that asks, by default "Codex"; a brief
	// question writes home, the person's home folder, as ~.
	Question(engine, home string) *elicit.Question
	// Name names the subject in a few words, after "waiting for approval of".
	Name() string
	// Whole returns the words of the subject of which the question may show only a part, nil if it shows all.
	Whole() []string
	// Meta returns the facts for clients that show more than a message.
	Meta() map[string]any
	// Codex returns how Codex's own server asks about it, nil if it does not.
	Codex() *Codex
	// Event returns the event that reports the question to those who listen, nil for none.
	Event() protocol.EventMsg
	// Show calls the method of v that shows questions of this kind.
	Show(v View)
}

// Effect is what an approval has happen.
type Effect int

// The effects.
const (
	GoesOn    Effect = iota // the turn waits for the answer, and goes on
	Begins                  // the turn waits for the answer, and the call begins, so that its events follow
	Reaches                 // a command that runs waits for the answer; the end of the command denies it
	Overrules               // nothing waits, and nothing runs: a denial is overruled. Without an answer it stands
)

// Approver is who may approve a subject. The zero value is the strictest.
type Approver int

// The approvers. A person is one who answers the question: an answer that comes too fast for a person is none.
const (
	PersonAlone    Approver = iota // no rule is asked
	PersonOrDenial                 // a rule can only deny it
	Anyone                         // also a rule, and a program that answers in the place of a person
)

// Lasting is what a lasting rule is about: a command with these words in this folder, in the sandbox, or else a host
// that commands in the sandbox reach.
type Lasting struct {
	// Command is the argv, nil unless the engine can run it in the sandbox. Cwd is its folder.
	Command []string
	Cwd     string
	// Hostname is a name in lower case.
	Hostname string
}

// Codex is a question in the form of Codex's own server.
type Codex struct {
	// Members are those of elicitation/create besides the message.
	Members map[string]any
	// Method is that of September 2025, and Params returns its params for a conversation.
	Method string
	Params func(conversation string) any
}

// View shows a question at a place that shows more than messages.
type View interface {
	Command(c Command)
	Patch(p Patch)
	// Message shows the message alone.
	Message()
}

// Kind is the kind of an action, in the record and in results.
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

// Facts are an action as the record has it.
type Facts struct {
	Kind    Kind     `json:"kind,omitzero"`
	Command []string `json:"command,omitzero"`
	Cwd     string   `json:"cwd,omitzero"`
	// Hostname is a host that the command wants to reach.
	Hostname string `json:"host,omitzero"`
	// Changes are those of a patch, sorted by path. MoreChanges is how many are left out.
	Changes     []ChangeFacts `json:"changes,omitzero"`
	MoreChanges int           `json:"moreChanges,omitzero"`
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

// ChangeFacts are the change of one file.
type ChangeFacts struct {
	Path string `json:"path"`
	// Kind is add, delete or update.
	Kind   string `json:"kind"`
	MoveTo string `json:"moveTo,omitzero"`
	Diff   string `json:"diff,omitzero"`
}

// changeFacts returns the changes of a patch. With content they have it.
func changeFacts(changes map[string]protocol.FileChange, content bool) (all []ChangeFacts) {
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		f := changes[path]
		c := ChangeFacts{Path: path, Kind: f.Kind()}
		if to := f.MovedTo(); to != path {
			c.MoveTo = to
		}
		if content {
			c.Diff = f.Diff()
		}
		all = append(all, c)
	}
	return all
}

// Tool is the call of a tool that an engine makes, or has refused or allowed by itself. Its name may be one of an MCP
// server with the name of the server before.
type Tool struct {
	Name, Cwd string
}

// Facts implements [Action].
func (t Tool) Facts(bool) Facts { return Facts{Kind: KindTool, Tool: t.Name, Cwd: t.Cwd} }

// Refusal implements [Action].
func (t Tool) Refusal() protocol.Refusal {
	return protocol.Refusal{Kind: string(KindOther), What: plain.Short(t.Name, plain.MaxWords)}
}

// ActionOf returns what an engine has refused or allowed by itself.
func ActionOf(r *protocol.Refused) Action {
	switch {
	case r.Hostname != "":
		return Network{Hostname: r.Hostname, Cwd: r.Cwd}
	case len(r.Command) > 0:
		return Command{Command: r.Command, Cwd: r.Cwd}
	case len(r.Changes) > 0:
		return Patch{Changes: r.Changes, Cwd: r.Cwd}
	}
	return Tool{Name: r.Tool, Cwd: r.Cwd}
}
