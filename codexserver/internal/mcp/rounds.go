package mcp

import (
	"context"
	"crypto/sha256"
	stdjson "encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// digest is a hash of a tool's name and arguments. It does not depend on the order of
// members.
type digest [sha256.Size]byte

// callTool answers tools/call: it starts a call, or takes the answers to the questions of one.
func (s *ModernSession) callTool(q *request) (any, error) {
	p, err := s.newParams(q.rpc.Params)
	switch {
	case err != nil:
		return nil, err
	case p.state != nil:
		return s.retry(q, p)
	}
	return s.long(q, func(q *request) (any, error) {
		c, err := s.newCall(q, p)
		if err != nil {
			return nil, err
		}
		return c.serve(q)
	})
}

// params are the params of tools/call.
type params struct {
	tool      string
	arguments jsontext.Value            // an object
	digest    digest                    // of the tool and the arguments
	state     *string                   // requestState; nil in the first request of a call
	answers   map[string]jsontext.Value // inputResponses; package elicit decodes them
}

// newParams decodes and checks the params of tools/call.
func (s *ModernSession) newParams(raw stdjson.RawMessage) (*params, error) {
	m, err := members("", jsontext.Value(raw))
	if err != nil {
		return nil, err
	}
	p := &params{arguments: jsontext.Value(`{}`)}
	if v, ok := m["requestState"]; ok {
		p.state = new(string)
		if err := decodeText(v, "/requestState", p.state); err != nil {
			return nil, err
		}
	}
	if v, ok := m["inputResponses"]; ok {
		if p.answers, err = members("/inputResponses", v); err != nil {
			return nil, err
		}
	}
	name, ok := m["name"]
	if !ok {
		return nil, Invalid("/name", "missing")
	}
	if err := decodeText(name, "/name", &p.tool); err != nil {
		return nil, err
	}
	if !s.client.server.Tools.Has(p.tool) {
		return nil, Invalid("/name", "%s", s.client.server.Tools.Unknown(p.tool))
	}
	if v, ok := m["arguments"]; ok {
		p.arguments = objectIn(v)
	}
	if p.arguments.Kind() != '{' {
		return nil, Invalid("/arguments", "want an object")
	}
	canonical := p.arguments.Clone()
	if err := canonical.Canonicalize(); err != nil { // RFC 8785
		return nil, Invalid("/arguments", "%v", err)
	}
	p.digest = sha256.Sum256(append([]byte(p.tool+"\x00"), canonical...))
	if p.state == nil && len(p.answers) > 0 {
		return nil, Invalid("/requestState", "required with inputResponses") // otherwise the turn would run again
	}
	return p, nil
}

// retry takes the answers of a retry, on the read loop if the connection has several
// requests, and then serves its call.
func (s *ModernSession) retry(q *request, p *params) (any, error) {
	if err := s.enter(); err != nil { // the state remains valid
		return nil, err
	}
	st, err := s.resume(*p.state, p.digest)
	if err != nil {
		s.open.leave()
		return nil, err
	}
	c := st.call
	c.attach(q) // before the turn continues
	c.take(st.keys, p.answers)
	if s.shared { // this request has the connection for itself
		defer s.open.leave()
		return c.serve(q)
	}
	s.client.later(q.rpc, func() (any, error) { return c.serve(q) }, s.open.leave)
	return nil, nil
}

// gather is how long a question waits for others, so that they are sent together.
const gather = 20 * time.Millisecond

// serve answers a request of the call with the result of the call, with questions, or with
// a task. If the request is cancelled it interrupts the turn.
func (c *call) serve(q *request) (any, error) {
	c.attach(q)
	defer c.detach()
	// A client that cancels does not return, even if the answer would have been a question.
	context.AfterFunc(q.ctx, func() {
		if cause := context.Cause(q.ctx); errors.Is(cause, jsonrpc.ErrCancelled) {
			c.cancel(cause)
		}
	})
	began, bound := time.Now(), false // bound by the deadline of the call
	wait, stop := c.session.grace(q)
	defer stop()
	w := &waiting{call: c, tasks: q.tasks}
	for {
		if !bound && !w.taskable() {
			bound = true
			if most := c.mayTake(q); most > 0 {
				defer c.call.Deadline.Set(began.Add(most))()
			}
		}
		reason := tools.Wait(wait, true, w)
		if reason == tools.Limit { // the grace period is over
			w.late, wait = true, q.ctx
		}
		if (reason == tools.Question || w.late) && w.taskable() {
			if result := c.becomeTask(q.canAsk); result != nil {
				return result, nil
			}
		}
		w.late = w.late && !w.begun()
		if reason == tools.Question && c.inbox.has() && (q.canAsk || !c.inbox.refuse()) {
			gathered, stop := context.WithTimeoutCause(wait, gather, tools.ErrLimit) // others are sent with it
			reason = tools.Wait(gathered, false, w)
			stop()
			if reason == tools.Limit {
				if result, err := c.round(q.canAsk); result != nil || err != nil {
					return result, err
				}
			}
		}
		switch reason {
		case tools.End:
			c.call.Answered()
			return c.complete(c.result), nil
		case tools.Cancel:
			c.cancel(context.Cause(q.ctx))
			<-c.done
			return c.complete(c.result), nil // sent unless the client cancelled
		}
	}
}

// waiting is a call as a request waits for it.
type waiting struct {
	call  *call
	tasks bool // the answer may be a task
	late  bool // the grace period is over, and the call has no turn yet
}

// Done implements [tools.Pending].
func (w *waiting) Done() <-chan struct{} { return w.call.done }

// Asks implements [tools.Pending]. A turn that can become a task at last counts as a question.
func (w *waiting) Asks() (open bool, changed <-chan struct{}) {
	c := w.call
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inbox.has() || w.late && c.turn != nil, c.changed
}

// taskable reports whether the answer to the request may be a task.
func (w *waiting) taskable() bool {
	w.call.mu.Lock()
	defer w.call.mu.Unlock()
	return w.call.taskable && w.tasks
}

// begun reports whether the call has a turn.
func (w *waiting) begun() bool {
	w.call.mu.Lock()
	defer w.call.mu.Unlock()
	return w.call.turn != nil
}

// grace returns the context of a request, which ends with [tools.ErrLimit] when one that supports tasks is
// answered with one.
func (s *ModernSession) grace(q *request) (context.Context, context.CancelFunc) {
	if !q.tasks || !s.client.server.Tasks.serves() {
		return q.ctx, func() {}
	}
	return context.WithTimeoutCause(q.ctx, s.client.server.Tasks.options.Grace, tools.ErrLimit)
}

// attach makes q the request that waits for the call.
func (c *call) attach(q *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attached.client = q.client
	if c.attached.outlet == nil {
		c.attached.outlet = c.newOutlet(q, "thinking")
		c.change()
	}
}

// detach ends the notifications for the request.
func (c *call) detach() {
	c.mu.Lock()
	o := c.attached.outlet
	c.attached.outlet = nil
	c.change()
	c.mu.Unlock()
	sent := o.close()
	if o.progress == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attached.sent = sent
}

// maxRounds is how many results of one call may have questions. With a few more, clients
// fail the call without a report.
const maxRounds = 8

// round returns the open questions as a result for a client that can be asked, or nil if there are none.
// After too many rounds the turn continues in the background.
func (c *call) round(can bool) (any, error) {
	if !can {
		return nil, nil
	}
	requests, rounds := c.inbox.round()
	c.mu.Lock()
	turn := c.turn
	c.mu.Unlock()
	switch {
	case len(requests) == 0:
		return nil, nil
	case rounds <= maxRounds:
		state := c.session.park(c, slices.Sorted(maps.Keys(requests)))
		return &modern.InputRequiredResult{Meta: c.session.resultMeta(), InputRequests: requests, RequestState: &state}, nil
	case turn == nil || !c.session.client.server.Tools.Has("codex-wait"):
		c.cancel(errRounds)
		<-c.done
		return c.complete(c.result), nil
	}
	c.leaveAlone()
	if !turn.Detach() {
		<-c.done
		return c.complete(c.result), nil
	}
	return c.complete(turn.Interim("This call has asked as often as clients take it. Call codex-wait with this threadId: it asks, and has the result.")), nil
}

var (
	errRounds   = errors.New("the call has asked too often")
	errNoAnswer = errors.New("no answer came back in time; codex-reply continues the conversation")
)

// leaveAlone makes the turn continue without the client.
func (c *call) leaveAlone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attached.alone = true
}

// isAlone reports whether the turn continues without the client.
func (c *call) isAlone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attached.alone
}

// expire interrupts the turn if no client waits for it. It is called when a question has
// timed out.
func (c *call) expire() {
	c.mu.Lock()
	gone := c.attached.gone() && c.turn != nil
	c.mu.Unlock()
	if gone {
		c.cancel(errNoAnswer)
	}
}
