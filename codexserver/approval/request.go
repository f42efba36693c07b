package approval

import (
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Request is one thing that is not done before it is approved.
type Request struct {
	// Thread is the thread that asks.
	Thread Thread
	// Turn is the id of the turn that asks, as its events bear it.
	Turn string
	// Event is what the thread wants: a [protocol.ExecApprovalRequest], a
	// [protocol.PatchApprovalRequest], or another event that only Question
	// explains.
	Event protocol.EventMsg
	// Question is what a person is asked. Places read it and do not change it.
	Question *elicit.Question
	// Patience is how long the question stays open if the options do not say. It suits a
	// place that a person looks at from time to time. Default: that of [elicit.Options].
	Patience time.Duration
	// Deny is why the request is denied before any rule, and without asking; ""
	// is for all others.
	Deny string
}

// MetaKey is the key of [Request.Meta] in the _meta of an elicitation/create request.
const MetaKey = "codex/approval"

// Meta returns the facts of the request for clients that show more than the
// question's message: threadId, eventId, and for a command or a patch also kind,
// callId, command and cwd or changes, and reason.
func (r *Request) Meta() map[string]any {
	m := map[string]any{"threadId": r.Thread.ID, "eventId": r.Turn}
	switch e := r.Event.(type) {
	case protocol.ExecApprovalRequest:
		m["kind"], m["callId"], m["command"], m["cwd"] = "exec", e.CallID, e.Command, e.Cwd
		if e.Reason != "" {
			m["reason"] = e.Reason
		}
	case protocol.PatchApprovalRequest:
		m["kind"], m["callId"], m["changes"] = "patch", e.CallID, e.Changes
		if e.Reason != "" {
			m["reason"] = e.Reason
		}
	}
	return m
}

// Thread is a thread as a [Desk] sees it.
type Thread struct {
	// ID is the thread's id.
	ID string
	// Server is the id of the server that runs the thread. Two servers may run
	// the same thread; Stop reaches one of them.
	Server string
	// Principal is whose thread it is, where a server has several users; else "". Who
	// answers as the client is that principal.
	Principal string
	// Stop interrupts the running turn and does not wait for its end. It does
	// nothing between turns.
	Stop func()
}

// Decision is how a question ended, and who decided.
type Decision struct {
	elicit.Outcome
	// By is who decided. Without an answer in time, it is the last place that was asked.
	By Decider
	// Remarks explain to the caller of the tool, in sentences, why the question
	// could not be answered at a place. There are none usually.
	Remarks []string
}

// Decider names who decided.
type Decider string

// The deciders.
const (
	ByRule   Decider = "rule"   // [Rules]
	ByClient Decider = "client" // the MCP client
	ByDesk   Decider = "desk"   // a [Desk]

	ByApprover Decider = "approver" // a client of [Options].Approver, by a [Relay]
)
