package mcp

import (
	"context"
	"crypto/sha256"
	stdjson "encoding/json"
	"errors"
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
func (s *Session) callTool(q *request) (any, error) {
	p, err := s.newParams(q.rpc.Params)
	switch {
	case err != nil:
		return nil, err
	case p.state != nil:
		return s.retry(q, p)
	}
	c, err := s.newCall(q, p)
	if err != nil {
		return nil, err
	}
	return c.serve(q)
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
func (s *Session) newParams(raw stdjson.RawMessage) (*params, error) {
	m, err := members("", jsontext.Value(raw))
	if err != nil {
		return nil, err
	}
	p := &params{arguments: jsontext.Value(`{}`)}
	if _, ok := m["requestState"]; ok {
		state, err := textIn(m, "", "requestState")
		if err != nil {
			return nil, err
		}
		p.state = &state
	}
	if v, ok := m["inputResponses"]; ok {
		if p.answers, err = members("/inputResponses", v); err != nil {
			return nil, err
		}
	}
	if p.tool, err = textIn(m, "", "name"); err != nil {
		return nil, err
	}
	if !s.server.Tools.Has(p.tool) {
		return nil, Invalid("/name", "unknown tool %q", p.tool)
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

// retry takes the answers of a retry, on the read loop, and then serves its call in another goroutine.
func (s *Session) retry(q *request, p *params) (any, error) {
	c, err := s.calls.resume(*p.state, p.digest)
	if err != nil {
		return nil, err
	}
	c.attach(q, "thinking", false) // before the turn continues
	c.take(p.answers)
	s.Later(q.rpc, func() (any, error) { return c.serve(q) })
	return nil, nil
}

// gather is how long a question waits for others, so that they are sent together.
const gather = 20 * time.Millisecond

// serve answers the request that waits for the call with the result of the call, with questions, or with
// a task. If the request is cancelled it interrupts the turn.
func (c *call) serve(q *request) (any, error) {
	defer c.outlet.detach(q.ctx)
	// A client that cancels does not return, even if the answer would have been a question.
	context.AfterFunc(q.ctx, func() {
		if cause := context.Cause(q.ctx); errors.Is(cause, jsonrpc.ErrCancelled) {
			c.cancel(cause)
		}
	})
	began, most := time.Now(), c.mayTake(q)
	if q.tasks && c.session.server.Tasks != nil { // a call that takes longer becomes one
		grace := max(c.session.server.Tasks.options.Grace, 1)
		late := time.AfterFunc(grace, func() { c.update(func() { c.late = true }) })
		defer late.Stop()
	}
	for {
		c.session.calls.mu.Lock()
		tasks := q.tasks && c.taskable
		c.session.calls.mu.Unlock()
		wait, stop := q.ctx, context.CancelFunc(func() {})
		if most > 0 && !tasks {
			wait, stop = context.WithDeadlineCause(q.ctx, began.Add(most), tools.ErrLimit)
		}
		err := tools.Wait(wait, true, c)
		stop()
		switch {
		case err == nil && q.ctx.Err() == nil:
			c.toolCall.Answered()
			return c.session.server.complete(c.result), nil
		case errors.Is(err, tools.ErrAsks):
			if tasks {
				if result := c.becomeTask(q.canAsk); result != nil {
					return result, nil
				}
			}
			if result := c.round(q.ctx, q.canAsk); result != nil {
				return result, nil
			}
		case errors.Is(err, tools.ErrLimit): // the call takes as long as it may
			most = 0
			c.passes()
		default:
			c.cancel(context.Cause(q.ctx))
			<-c.done
			c.toolCall.GaveUp()
			return c.session.server.complete(c.result), nil // sent unless the client cancelled
		}
	}
}

// maxRounds is how many results of one call may have questions. With a few more, clients
// fail the call without a report.
const maxRounds = 8

// round returns the open questions as a result for a client that can be asked, after a wait for others, which are
// sent with it, or nil if there are none any more. After too many rounds the turn continues in the background.
func (c *call) round(ctx context.Context, can bool) any {
	if !can {
		c.refuse()
		return nil
	}
	wait, stop := context.WithTimeoutCause(ctx, gather, tools.ErrLimit)
	defer stop()
	if !errors.Is(tools.Wait(wait, false, c), tools.ErrLimit) {
		return nil
	}
	text, asks := "", false
	c.session.calls.mu.Lock()
	turn, requests := c.turn, c.inbox.requests()
	if asks = len(requests) > 0; asks {
		if c.inbox.rounds++; c.inbox.rounds <= maxRounds {
			text = c.session.calls.park(c)
		}
	}
	c.session.calls.mu.Unlock()
	switch {
	case !asks:
		return nil
	case text != "":
		return &modern.InputRequiredResult{Meta: c.session.server.meta(), InputRequests: requests, RequestState: &text}
	case turn != nil && c.session.server.Tools.Has("codex-wait"):
		if r := c.toolCall.Leave(); r != nil {
			c.update(func() { c.alone = true })
			return c.session.server.complete(r)
		}
	}
	c.cancel(errRounds)
	return nil
}

var (
	errRounds   = errors.New("the call has asked too often")
	errNoAnswer = errors.New("no answer came back in time; codex-reply continues the conversation")
)
