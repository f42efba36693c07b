package approval

import (
	"time"

	"github.com/codexmcp/codexmcp/elicit"
)

// Request is an action that needs an approval.
type Request struct {
	// Thread is the thread that asks.
	Thread Thread
	// Turn is the id of the turn that asks, which is also the id of its events.
	Turn string
	// TurnID is the id of that turn in the record and in events that name it.
	TurnID string
	// Subject is what the question is about. Rules do not decide about each: see [Approver].
	Subject Subject
	// Question is what a person is asked. It must not be changed.
	Question *elicit.Question
	// Timeout is how long the question stays open if the server has no time-out. It is for
	// places that a person looks at only from time to time. 0 means the default of
	// [elicit.Options], and a negative value no limit.
	Timeout time.Duration
	// Deny, if not "", denies the request before any rule and without a question. It is
	// the reason.
	Deny string
}

// Thread is a thread as a [Desk] sees it.
type Thread struct {
	// ID is the thread's id.
	ID string
	// Server is the id of the server that runs the thread. Two servers may run the same
	// thread; Stop reaches this one.
	Server string
	// Principal is the user whose thread it is, if a server has several users; else "".
	// Answers [ByClient] come from that user.
	Principal string
	// Engine is what questions call the engine that runs it, such as "Codex".
	Engine string
	// Stop interrupts the running turn and does not wait for its end. It does
	// nothing between turns.
	Stop func()
	// Log returns the last lines of what happened in the thread, a few KiB, as text of models and commands
	// that is not safe to show. Nil means that there are none.
	Log func() string
	// Now returns what its turn does now on one line, "" between turns. The last part of the line may be the last line
	// that a command has printed, in quotes. Nil means that this is not known.
	Now func() string
}

// Decision is a decision about a request, and who made it.
type Decision struct {
	elicit.Outcome
	// ID is the id of the decision in the record, "" if it is not recorded.
	ID string
	// By is who decided: one of the words below, or the name of a [Desk].
	By Decider
	// Client is the name of the client that answered, "" if it has none or another place answered.
	Client string
	// RuleWords is what a person read of the rule that was kept with this decision, else "".
	RuleWords string
	// Remarks are sentences for the caller of the tool: why places could not ask the
	// question. Usually there are none.
	Remarks []string
}

// Decider names who decided.
type Decider string

// The deciders besides a [Desk], which has its own name.
const (
	ByClient   Decider = "client"   // the MCP client
	ByPage     Decider = "page"     // the approvals page of package page, which is a [Desk]
	ByTerminal Decider = "terminal" // the terminal of codex-mcp ask
	ByRule     Decider = "rule"     // [Rules]
	ByPolicy   Decider = "policy"   // the engine's own policy, without a question
	ByReviewer Decider = "reviewer" // a model that Codex has review what it would ask, without a question
	ByNobody   Decider = "nobody"   // nobody answered, or no answer counted; the reason says why
)
