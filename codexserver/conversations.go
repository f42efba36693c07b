package codexserver

import (
	"context"
	"errors"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// conversations are those of one session, by id in its canonical form. The zero
// value is ready.
type conversations struct {
	mu     sync.Mutex
	byID   map[string]*conversation
	closed bool
}

var errSessionEnded = errors.New("the session has ended")

func (cs *conversations) add(c *conversation) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		return errSessionEnded
	}
	if cs.byID == nil {
		cs.byID = map[string]*conversation{}
	}
	cs.byID[canonicalID(c.ID())] = c
	return nil
}

func (cs *conversations) find(id string) *conversation {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.byID[canonicalID(id)]
}

// take removes a conversation; nil when it is not there.
func (cs *conversations) take(id string) *conversation {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	id = canonicalID(id)
	c := cs.byID[id]
	delete(cs.byID, id)
	return c
}

// close closes every conversation once its turn has ended.
func (cs *conversations) close() error {
	cs.mu.Lock()
	cs.closed = true
	all := cs.byID
	cs.byID = nil
	cs.mu.Unlock()
	var err error
	for _, c := range all {
		err = errors.Join(err, c.end(context.Background()))
	}
	return err
}

// conversation is an engine's conversation with its place in line.
type conversation struct {
	engine.Conversation
	host *host
	line line

	mu      sync.Mutex
	running *running // nil between turns
}

// running is a turn under way.
type running struct {
	cancel context.CancelCauseFunc
	ended  chan struct{}
}

// errInterrupted is the cause of an interrupt that the client asked for.
var errInterrupted = errors.New("interrupted by the client")

// run waits for its place in line, then runs one turn for whoever asked. A turn
// that never began is an interrupted one.
func (c *conversation) run(ctx context.Context, p *place, a asker, in protocol.TurnInput) error {
	defer p.leave()
	if err := p.wait(ctx); err != nil {
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: err}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &running{cancel: cancel, ended: make(chan struct{})}
	defer close(r.ended)
	c.mu.Lock()
	c.running = r
	c.mu.Unlock()

	c.host.begin(a)
	c.host.tell(c.ID(), protocol.UserMessage{Message: protocol.TextOf(in.Items), Kind: protocol.UserPlain})
	err := c.Turn(ctx, in)
	c.host.end(ctx.Err() != nil)

	c.mu.Lock()
	c.running = nil
	c.mu.Unlock()
	return err
}

// busy reports whether a turn is under way.
func (c *conversation) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running != nil
}

// stop ends the turn under way without waiting for its end; nil when there is none.
func (c *conversation) stop(cause error) *running {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil {
		c.running.cancel(cause)
	}
	return c.running
}

// interrupt ends the turn under way and waits for its end; false when there is none.
func (c *conversation) interrupt(ctx context.Context) (bool, error) {
	r := c.stop(errInterrupted)
	if r == nil {
		return false, nil
	}
	select {
	case <-r.ended:
		return true, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

// shut closes the conversation once nobody uses it.
func (c *conversation) shut(ctx context.Context) error {
	p := c.line.join() // never left: nobody comes after
	if err := p.wait(ctx); err != nil {
		p.leave()
		return err
	}
	return c.Close()
}

// end shuts a conversation that does not go on, and tells so.
func (c *conversation) end(ctx context.Context) error {
	err := c.shut(ctx)
	c.host.tell(c.ID(), protocol.ShutdownComplete{})
	return err
}
