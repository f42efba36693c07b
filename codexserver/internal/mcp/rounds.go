package mcp

import (
	"context"
	"crypto/sha256"
	stdjson "encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

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
	var gathered <-chan time.Time
	grace := c.session.grace(q)
	late := false // the grace period is over
	began := time.Now()
	var answered func() // ends the deadline; nil while the answer may be a task
	for {
		c.mu.Lock()
		changed, taskable := c.changed, c.taskable && q.tasks
		c.mu.Unlock()
		open := c.inbox.has()
		if taskable && (late || open) {
			if result := c.becomeTask(q.canAsk); result != nil {
				return result, nil
			}
		}
		if !taskable && answered == nil {
			answered = c.deadline.within(c.mayTake(q), began)
			defer answered()
		}
		if open && !q.canAsk && c.inbox.refuse() {
			continue
		}
		switch {
		case !open:
			gathered = nil
		case gathered == nil:
			gathered = time.After(gather)
		}
		select {
		case <-c.done:
			c.call.Answered()
			return c.complete(c.result), nil
		case <-gathered:
			if result, err := c.round(q.canAsk); result != nil || err != nil {
				return result, err
			}
			gathered = nil
		case <-changed:
		case <-grace:
			late = true
		case <-q.ctx.Done():
			c.cancel(context.Cause(q.ctx))
			<-c.done
			return c.complete(c.result), nil // sent unless the client cancelled
		}
	}
}

// grace returns a channel that fires when a request that supports tasks is answered with
// one. It is nil for other requests.
func (s *ModernSession) grace(q *request) <-chan time.Time {
	if !q.tasks || !s.client.server.Tasks.serves() {
		return nil
	}
	return time.After(s.client.server.Tasks.options.Grace)
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
	job := c.job
	c.mu.Unlock()
	switch {
	case len(requests) == 0:
		return nil, nil
	case rounds <= maxRounds:
		state := c.session.park(c, slices.Sorted(maps.Keys(requests)))
		return &modern.InputRequiredResult{Meta: c.session.resultMeta(), InputRequests: requests, RequestState: &state}, nil
	case job == nil || !c.session.client.server.Tools.Has("codex-wait"):
		c.cancel(errRounds)
		<-c.done
		return c.complete(c.result), nil
	}
	c.leaveAlone()
	if !job.Detach() {
		<-c.done
		return c.complete(c.result), nil
	}
	return c.complete(job.Interim("This call has asked as often as clients take it. Call codex-wait with this threadId: it asks, and has the result.")), nil
}

var (
	errRounds    = errors.New("the call has asked too often")
	errAbandoned = errors.New("no answer came back in time; codex-reply continues the conversation")
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

// abandon interrupts the turn if no client waits for it. It is called when a question has
// timed out.
func (c *call) abandon() {
	c.mu.Lock()
	abandoned := c.attached.abandoned() && c.job != nil
	c.mu.Unlock()
	if abandoned {
		c.cancel(errAbandoned)
	}
}
