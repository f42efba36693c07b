package appclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Turn is a turn that the app-server was asked to begin.
type Turn struct {
	client       *Client
	threadID     string
	note         func(string, *apptypes.Note)
	begun, ended chan struct{}

	// What comes before the answer of turn/start is held, because only that says which turn is this one.
	order    sync.Mutex // is held while a notification of the thread is passed on, before the client's lock
	answered bool
	held     []held
	passed   bool // what was held

	// The client's lock guards these.
	id      string // since the answer
	started bool
	end     *apptypes.Turn
	err     error
}

// held is a notification that waits.
type held struct {
	method string
	note   *apptypes.Note
}

// Begin asks the app-server to begin a turn of a thread that this client started or resumed, and does not wait.
// Note, which may be nil, gets the notifications of the turn as [Options].Note does, and none of its sub-agents. The turn is
// that of the answer, whatever else begins in the thread; notifications that come before the answer wait for it.
// It is an error if another turn of the thread has not ended.
func (c *Client) Begin(p *apptypes.TurnParams, note func(method string, n *apptypes.Note)) (*Turn, error) {
	t := &Turn{client: c, threadID: p.ThreadID, note: note, begun: make(chan struct{}), ended: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turns[p.ThreadID] != nil {
		return nil, errors.New("appclient: a turn of this thread runs")
	}
	if c.closed {
		return nil, fmt.Errorf("appclient: %w", jsonrpc.ErrClosed)
	}
	c.turns[p.ThreadID] = t
	c.asked.Go(func() {
		var r apptypes.TurnReply
		err := c.Call(context.Background(), apptypes.CallTurnStart, p, &r)
		if err == nil && r.Turn.ID == "" {
			err = errors.New("codex answered turn/start without the id of a turn")
		}
		t.answer(r.Turn.ID, err)
	})
	return t, nil
}

// answer takes the answer of turn/start, and passes on what was held.
func (t *Turn) answer(id string, err error) {
	t.order.Lock()
	defer t.order.Unlock()
	t.answered = true
	t.client.mu.Lock()
	if t.id = id; err != nil {
		t.err = err
		t.over()
	}
	t.client.mu.Unlock()
	for _, h := range t.held {
		t.client.pass(t, h.method, h.note)
	}
	t.held, t.passed = nil, true
	t.client.mu.Lock()
	defer t.client.mu.Unlock()
	if t.started { // only now, so that who waits for that finds what came before
		close(t.begun)
	}
}

// Settle waits until no turn of a thread runs. The error is [jsonrpc.ErrClosed] if the connection has ended, or the
// cause of ctx.
func (c *Client) Settle(ctx context.Context, threadID string) error {
	c.mu.Lock()
	t := c.turns[threadID]
	c.mu.Unlock()
	if t == nil {
		return nil
	}
	return c.wait(ctx, t.ended)
}

// Begun waits until the app-server has begun the turn, and takes messages to it. The error is why it did not, as of
// [Turn.Wait].
func (t *Turn) Begun(ctx context.Context) error {
	if err := t.client.wait(ctx, t.begun); err != nil {
		return err
	}
	_, err := t.End()
	return err
}

// Wait waits for the end of the turn, and returns it with an error if the turn was not completed. Without an end, the
// error is the app-server's refusal to begin the turn, [jsonrpc.ErrClosed] if the connection has ended, or the cause of
// ctx. The turn then goes on until apptypes.CallTurnInterrupt ends it.
func (t *Turn) Wait(ctx context.Context) (*apptypes.Turn, error) {
	over := t.client.wait(ctx, t.ended)
	end, err := t.End()
	if end != nil {
		over = endError(end)
	}
	return end, cmp.Or(err, over)
}

// ID returns the turn's id, "" before the app-server has said it.
func (t *Turn) ID() string {
	t.client.mu.Lock()
	defer t.client.mu.Unlock()
	return t.id
}

// End returns the end of the turn, nil before it, or why the app-server did not begin it.
func (t *Turn) End() (*apptypes.Turn, error) {
	t.client.mu.Lock()
	defer t.client.mu.Unlock()
	return t.end, t.err
}

// endError returns the error of the end of a turn, nil if the turn was completed.
func endError(end *apptypes.Turn) error {
	switch {
	case end.Status == apptypes.TurnStatusCompleted:
		return nil
	case end.Error == nil:
		return fmt.Errorf("the turn ended with the status %s", end.Status)
	}
	return fmt.Errorf("the turn ended with the status %s: %s", end.Status, end.Error.Message)
}

// wait waits for a channel. The error is the cause of ctx or the end of the connection.
func (c *Client) wait(ctx context.Context, what <-chan struct{}) error {
	select {
	case <-what:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.done:
	}
	if c.err == nil {
		return fmt.Errorf("codex app-server has ended: %w", jsonrpc.ErrClosed)
	}
	return fmt.Errorf("codex app-server has ended: %w (%w)", jsonrpc.ErrClosed, c.err)
}

// over ends the turn, once. The client's lock is held.
func (t *Turn) over() {
	delete(t.client.turns, t.threadID)
	if !t.started {
		close(t.begun)
	}
	close(t.ended)
}

// follow passes a notification to the turn that it is about. Codex sends turn/started before the others.
func (c *Client) follow(method string, n *apptypes.Note) {
	c.mu.Lock()
	t := c.turns[n.ThreadID]
	c.mu.Unlock()
	if t == nil {
		c.foreign(method, n)
		return
	}
	t.order.Lock()
	defer t.order.Unlock()
	if t.answered {
		c.pass(t, method, n)
	} else {
		t.held = append(t.held, held{method, n})
	}
}

// pass is follow for a thread whose last turn is known. That turn's order is held.
func (c *Client) pass(t *Turn, method string, n *apptypes.Note) {
	id := n.TurnID
	if n.Turn != nil {
		id = n.Turn.ID
	}
	c.mu.Lock()
	about := id != "" && t.id == id
	over := c.turns[t.threadID] != t
	if about && !over && !t.started && method == apptypes.NoteTurnStarted {
		if t.started = true; t.passed {
			close(t.begun)
		}
	}
	c.mu.Unlock()
	switch {
	case !about:
		c.foreign(method, n)
		return
	case over:
		return
	}
	if t.note != nil {
		t.note(method, n)
	}
	if method != apptypes.NoteTurnCompleted || n.Turn == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.end = n.Turn
	t.over()
}

// foreign reports the begin and the end of a turn that Begin did not begin.
func (c *Client) foreign(method string, n *apptypes.Note) {
	begunOrEnded := method == apptypes.NoteTurnStarted || method == apptypes.NoteTurnCompleted
	if c.options.Foreign != nil && n.Turn != nil && begunOrEnded {
		c.options.Foreign(method, n)
	}
}
