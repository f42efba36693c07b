package elicit

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// A Policy is the outcome of a question that no human decided.
type Policy string

// The policies. Not every field of Options takes each of them.
const (
	// PolicyDeny answers Denied; the turn continues.
	PolicyDeny Policy = "deny"
	// PolicyAbort answers Abort; the turn ends.
	PolicyAbort Policy = "abort"
	// PolicyFailCall is PolicyAbort, and the caller reads the Hint.
	PolicyFailCall Policy = "fail-call"
)

// A Form is what a question shows besides its message.
type Form string

// The forms.
const (
	// FormEmpty has no fields, so that every client can confirm it.
	FormEmpty Form = "empty"
	// FormDecision lets the human choose among the decisions and write feedback.
	FormDecision Form = "decision"
	// FormAuto is FormDecision for clients that declare {"elicitation":{"form":{}}}, otherwise FormEmpty.
	FormAuto Form = "auto"
	// FormDecisionBoth is FormDecision with the choice as an enum with enumNames (MCP
	// 2025-06-18) and as a oneOf with titles (MCP 2025-11-25).
	FormDecisionBoth Form = "decision-both"
)

// Options set what happens without a human's decision, and how questions are asked. Nil
// and the zero value mean the safe defaults: every failure denies, and no question waits
// longer than ten minutes. A word that a field does not list is replaced by the default.
type Options struct {
	// OnUnsupported applies when the client cannot be asked: PolicyDeny (the default),
	// PolicyAbort or PolicyFailCall.
	OnUnsupported Policy
	// OnError applies when the client answers with an error: PolicyDeny (the default),
	// PolicyAbort or PolicyFailCall.
	OnError Policy
	// OnTimeout applies when the client does not answer in time: PolicyDeny (the
	// default), PolicyAbort or PolicyFailCall.
	OnTimeout Policy
	// OnCancel applies when the client answers "cancel", which means that the human made
	// no choice: PolicyAbort (the default) or PolicyDeny.
	OnCancel Policy

	// Timeout is how long an answer may take, counted from the moment the question is
	// sent. 0 means DefaultTimeout, a negative value no limit.
	Timeout time.Duration

	// Schema is the form that a question shows. Default: FormEmpty.
	Schema Form

	// NoLegacyFlat refuses the answer {"decision":"approved"} without an action. Codex's
	// own server demanded that answer, so some clients send it.
	NoLegacyFlat bool

	// MaxPending is how many questions an Asker keeps open at a time; further ones wait in
	// order of arrival. 0 means DefaultMaxPending, a negative value no limit.
	MaxPending int

	// Elsewhere says where a person finds a question that the client does not show whole, after
	// "it is": "on the approvals page". Empty means nowhere.
	Elsewhere string

	// Who names who answers, for the model: "the approvals page". Default: "the client".
	Who string

	// Stopped is a clause for the model about an answer that ends the turn. Empty means that Who chose to
	// abort it.
	Stopped string

	// Unable is a clause about why nobody can be asked. Empty means that this MCP client cannot show
	// approval requests, or questions.
	Unable string

	// Hint is one sentence for the caller of a tool: what to do about a client that cannot
	// be asked. Empty means a hint to use a client with elicitation.
	Hint string
}

// The defaults of Options.
const (
	// DefaultTimeout is how long an answer may take.
	DefaultTimeout = 10 * time.Minute
	// DefaultMaxPending is how many questions are open at a time.
	DefaultMaxPending = 32
)

// The values that each field accepts, the default first.
var (
	failureWords = []string{string(PolicyDeny), string(PolicyAbort), string(PolicyFailCall)}
	cancelWords  = []string{string(PolicyAbort), string(PolicyDeny)}
	schemaWords  = []string{string(FormEmpty), string(FormDecision), string(FormAuto), string(FormDecisionBoth)}
)

// resolved returns a copy of o with every default filled in. The default also replaces a
// value that the field does not accept.
func (o *Options) resolved() *Options {
	full := new(Options)
	if o != nil {
		*full = *o
	}
	for _, field := range []struct {
		value *string
		words []string
	}{
		{(*string)(&full.OnUnsupported), failureWords}, {(*string)(&full.OnError), failureWords},
		{(*string)(&full.OnTimeout), failureWords},
		{(*string)(&full.OnCancel), cancelWords}, {(*string)(&full.Schema), schemaWords},
	} {
		if !slices.Contains(field.words, *field.value) {
			*field.value = field.words[0]
		}
	}
	full.Timeout = cmp.Or(full.Timeout, DefaultTimeout)
	full.MaxPending = cmp.Or(full.MaxPending, DefaultMaxPending)
	full.Who = cmp.Or(full.Who, "the client")
	full.Hint = cmp.Or(full.Hint, "Use a client that supports elicitation in form mode.")
	return full
}

// WithTimeout returns a context that ends when the time for an answer is over. Its cause
// is suitable as the reason in notifications/cancelled.
func (o *Options) WithTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := DefaultTimeout
	if o != nil {
		timeout = cmp.Or(o.Timeout, DefaultTimeout)
	}
	if timeout < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, errors.New("no answer within "+seconds(timeout)))
}
