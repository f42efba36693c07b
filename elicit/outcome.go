package elicit

import (
	"log/slog"
	"time"
)

// An Outcome is how one question ended. Every question has exactly one.
type Outcome struct {
	// Decision is what to do.
	Decision Decision
	// Reason is why; it is empty for a plain approval.
	Reason Reason
	// Values are what the human entered in the form, by name, if Question.Schema is one and the
	// decision approves. They follow that schema. A number is a float64, a list an []any.
	Values map[string]any
	// Feedback is what the human wrote for the model when refusing. At most 2,000
	// characters are kept.
	Feedback string
	// Confined limits an approval of a command to a run in the sandbox. No answer of a
	// client sets it.
	Confined bool
	// Ruled is true if a list of rules approved a command, so that nobody looks at it. Outside the
	// sandbox it starts only what commands cannot write. No answer of a client sets it.
	Ruled bool
	// Environ are names of variables that the list also gives the command outside the sandbox.
	Environ []string
	// Took is how long the client took to answer, from the moment the question was sent; 0 if
	// that is not known, or if it did not answer.
	Took time.Duration
	// Detail is a line for the log. It has the names of an answer's members, never their
	// values.
	Detail string
	// Level is the level to log Detail at.
	Level slog.Level

	model, caller string
}

// A Reason names why an Outcome is not a plain approval:
//
//	(empty)         the client approved
//	declined        the client refused; that does not prove that a human did
//	cancelled       the client aborted, or the human made no choice
//	not_understood  the client's answer could not be read for certain
//	client_error    the client answered with an error
//	unsupported     the client cannot be asked
//	timeout         the client did not answer in time
//	interrupted     the turn ended before the answer
//	peer_gone       the client is gone
type Reason string

// The reasons.
const (
	ReasonDeclined      Reason = "declined"
	ReasonCancelled     Reason = "cancelled"
	ReasonNotUnderstood Reason = "not_understood"
	ReasonClientError   Reason = "client_error"
	ReasonUnsupported   Reason = "unsupported"
	ReasonTimeout       Reason = "timeout"
	ReasonInterrupted   Reason = "interrupted"
	ReasonPeerGone      Reason = "peer_gone"
)

// ForModel returns the words for the model about a refusal, as a clause without
// a full stop: "declined: use the makefile", or "the client could not show the
// approval request (-32601)". It is empty when the decision approves.
//
// For an Outcome that this package did not make, it returns "declined" with the feedback.
func (out Outcome) ForModel() string {
	switch {
	case out.model != "" || out.Decision.Approves():
		return out.model
	case out.Feedback != "":
		return "declined: " + out.Feedback
	}
	return "declined"
}

// ForCaller returns sentences for the caller of the tool if the client could not be asked,
// failed or did not answer in time. Append them to the model's own text in the tool's
// result. It is empty otherwise.
func (out Outcome) ForCaller() string { return out.caller }

// refuse sets the decision of a question that no human decided, following the policy.
func refuse(policy Policy, out Outcome) Outcome {
	out.Decision = Denied
	switch policy {
	case PolicyAbort, PolicyFailCall:
		out.Decision = Abort
	}
	return out
}
