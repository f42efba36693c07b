package codexserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// A Desk is a second place, beside the client, where the work is seen and
// questions are answered, such as a page in a browser. It is used from several
// goroutines at a time. A panic in it is logged, and in Ask is no answer.
//
// A question stands at the desk and before the client at once. The first answer
// counts and the question is withdrawn from the other place; of two that arrive
// together the stricter one counts. A client that cannot be asked, or fails,
// leaves the decision to the desk. Where neither answers within
// Approvals.Timeout it is a timeout like any other.
type Desk interface {
	// Event tells what happens in a conversation, in order: what the engine
	// emits, a [protocol.UserMessage] before each turn, and a
	// [protocol.ShutdownComplete] at the end. It must not block.
	Event(c Thread, m protocol.EventMsg)
	// Ask shows a question until it is answered or ctx ends, and returns the
	// answer as an MCP client gives it, an ElicitResult. An error is no answer.
	Ask(ctx context.Context, r *ApprovalRequest) (json.RawMessage, error)
	// Decided tells how a question ended, also one that was never shown
	// because a rule answered it. By is "rule", "client" or "desk". It must not
	// block.
	Decided(r *ApprovalRequest, out elicit.Outcome, by string)
}

// Inviter is a [Desk] that tells how one gets there.
type Inviter interface {
	// Invite returns a sentence for the client's user, with a link say, or ""
	// when somebody is at the desk already. It is sent as a remark when the
	// client cannot show a question itself, or has failed to.
	Invite() string
}

// Thread is a conversation as a [Desk] sees it.
type Thread struct {
	// ID is the conversation's id.
	ID string
	// Session is the id of the session that it is open in: a conversation may
	// be open in several, of one server or of several, and stops in each alone.
	Session string
	// Stop interrupts the turn under way, if there is one, and does not wait.
	Stop func()
}

// ApprovalRequest is one thing that is not done before it is approved.
type ApprovalRequest struct {
	// Thread is the conversation that asks.
	Thread Thread
	// Request is what it wants: a [protocol.ExecApprovalRequest], a
	// [protocol.PatchApprovalRequest], or another event that only Question
	// explains.
	Request protocol.EventMsg
	// Question is what the client is asked.
	Question *elicit.Question
}

// Who decided.
const (
	byRule   = "rule"
	byClient = "client"
	byDesk   = "desk"
)

// errElsewhere is why a question is withdrawn from the place that did not answer.
var errElsewhere = errors.New("the question was answered elsewhere")

// ask puts a question to the client, and to the desk where there is one.
func (h *host) ask(ctx context.Context, r *ApprovalRequest) (elicit.Outcome, string) {
	o := &h.session.server.options
	a, _ := h.turn()
	client := func(ctx context.Context) elicit.Outcome { return a.ask(ctx, h, r.Question, r.Request) }
	_, tool := a.(*call)
	_, other := r.Request.(protocol.RawEvent)
	if other {
		asked := *r.Question // which others read
		asked.Extra = map[string]any{"threadId": r.Thread.ID}
		client = func(ctx context.Context) elicit.Outcome { return h.session.theAsker().Ask(ctx, &asked) }
	}
	if o.Desk == nil {
		return client(ctx), byClient
	}
	unable := (tool || other) && !h.session.canAsk()
	if unable {
		h.invite(o.Desk)
	}
	both, withdraw := context.WithCancelCause(ctx)
	defer withdraw(nil)
	bounded, cancel := approvalTimeout(both, &o.Approvals)
	defer cancel()
	atDesk := make(chan elicit.Outcome, 1)
	var failure error // of the desk
	go func() {
		defer close(atDesk)
		answer, err := h.askAtDesk(bounded, r)
		if err != nil {
			if bounded.Err() == nil {
				failure = err
			}
			return
		}
		atDesk <- r.Question.Read(answer, &o.Approvals)
	}()
	atClient := make(chan elicit.Outcome, 1)
	go func() { atClient <- client(both) }()

	var fromDesk, fromClient elicit.Outcome
	var answered, asked bool
	select {
	case fromDesk, answered = <-atDesk:
		if answered {
			withdraw(errElsewhere)
		}
		fromClient = <-atClient
		asked = isAnswer(fromClient)
	case fromClient = <-atClient:
		switch asked = isAnswer(fromClient); {
		case asked:
			withdraw(errElsewhere)
		case !unable && bounded.Err() == nil:
			h.invite(o.Desk)
		}
		fromDesk, answered = <-atDesk
	}
	if failure != nil {
		h.session.log.Warn("the desk could not be asked", "thread", r.Thread.ID, "error", failure)
		if !asked {
			a.excuse("The desk could not show the question: " + failure.Error() + ".")
		}
	}
	switch {
	case ctx.Err() != nil:
		return r.Question.ReadError(context.Canceled, &o.Approvals), byClient
	case answered && asked && strictness(fromClient) < strictness(fromDesk), answered && !asked:
		return fromDesk, byDesk
	case !asked && bounded.Err() != nil && both.Err() == nil:
		return r.Question.ReadError(context.DeadlineExceeded, &o.Approvals), byDesk
	}
	return fromClient, byClient
}

// invite tells a client that cannot ask, or has failed, where its user can be asked.
func (h *host) invite(d Desk) {
	inviter, ok := d.(Inviter)
	if !ok {
		return
	}
	if words := inviter.Invite(); words != "" {
		h.session.warn(words)
		h.Emit(protocol.BackgroundEvent{Message: words})
	}
}

// isAnswer reports whether the client has decided: neither was it unable to,
// nor was the question withdrawn.
func isAnswer(out elicit.Outcome) bool {
	return out.ForCaller() == "" && out.Reason != "interrupted"
}

func strictness(out elicit.Outcome) int {
	return slices.Index([]elicit.Decision{elicit.ApprovedForSession, elicit.Approved, elicit.Denied, elicit.Abort}, out.Decision)
}

// approvalTimeout bounds the time for an answer as package elicit does.
func approvalTimeout(ctx context.Context, o *elicit.Options) (context.Context, context.CancelFunc) {
	if o.Timeout < 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, cmp.Or(o.Timeout, defaultTimeout))
}

// defaultTimeout is the one of package elicit.
const defaultTimeout = 10 * time.Minute

// errStopped is the cause of an interrupt from the desk.
var errStopped = errors.New("stopped by the user")

// tell shows an event at the desk.
func (h *host) tell(thread string, m protocol.EventMsg) {
	if desk := h.session.server.options.Desk; desk != nil {
		h.guard("Desk.Event", func() { desk.Event(h.asThread(thread), m) })
	}
}

// askAtDesk asks at the desk. A panic there is no answer.
func (h *host) askAtDesk(ctx context.Context, r *ApprovalRequest) (answer json.RawMessage, err error) {
	err = errPanic
	h.guard("Desk.Ask", func() { answer, err = h.session.server.options.Desk.Ask(ctx, r) })
	return answer, err
}

var errPanic = errors.New("it panicked")

// guard calls what the embedding program has written: a panic there ends
// neither the turn nor the process, with everybody else's turns.
func (h *host) guard(name string, call func()) {
	defer func() {
		if v := recover(); v != nil {
			h.session.log.Error("panic", "in", name, "value", v, "stack", string(debug.Stack()))
		}
	}()
	call()
}

func (h *host) asThread(id string) Thread {
	return Thread{ID: id, Session: h.session.id, Stop: func() {
		if c := h.session.conversations.find(id); c != nil {
			c.stop(errStopped)
		}
	}}
}
