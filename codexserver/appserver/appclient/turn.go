package appclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// interruptLimit is how long an interrupted turn may take to end.
const interruptLimit = 10 * time.Second

// StartThread begins a thread.
func (c *Client) StartThread(ctx context.Context, p *apptypes.ThreadParams) (*apptypes.ThreadReply, error) {
	r := &apptypes.ThreadReply{}
	if err := c.Call(ctx, apptypes.CallThreadStart, p, r); err != nil {
		return nil, err
	}
	return r, nil
}

// Steer sends a message to a running turn. The app-server refuses it if the turn has ended.
func (c *Client) Steer(ctx context.Context, p *apptypes.SteerParams) error {
	return c.Call(ctx, apptypes.CallTurnSteer, p, nil)
}

// Interrupt asks the app-server to end a turn, which ends with a notification. The app-server
// refuses that if the turn has ended.
func (c *Client) Interrupt(ctx context.Context, threadID, turnID string) error {
	return c.Call(ctx, apptypes.CallTurnInterrupt, apptypes.InterruptParams{ThreadID: threadID, TurnID: turnID}, nil)
}

// EndError is the end of a turn that was not completed.
type EndError struct {
	// Status is apptypes.TurnStatusFailed, TurnStatusInterrupted or a word of a newer version.
	Status string
	// Reason is the app-server's; nil without one.
	Reason *apptypes.TurnError
}

// Error implements error.
func (e *EndError) Error() string {
	if e.Reason == nil {
		return "the turn ended with the status " + e.Status
	}
	return fmt.Sprintf("the turn ended with the status %s: %s", e.Status, e.Reason.Message)
}

// Turn is a turn that the app-server was asked to begin.
type Turn struct {
	client   *Client
	threadID string
	note     func(string, *apptypes.Note)
	sent     chan struct{}      // closed when call is set
	call     *jsonrpc.Call      // which asks for the turn
	forget   context.CancelFunc // gives up the answer to the call

	begun, ended chan struct{}

	// The client's lock guards these.
	id     string
	err    error
	result *apptypes.Turn
}

// errBusy is the error of a second turn.
var errBusy = errors.New("appclient: a turn of this thread runs")

// Begin asks the app-server to begin a turn of a thread that this client started or resumed. Note, which
// may be nil, gets the notifications of the turn as [Options].Note does, and none of its sub-agents. It is
// an error if another turn of the thread has not ended.
func (c *Client) Begin(p *apptypes.TurnParams, note func(method string, n *apptypes.Note)) (*Turn, error) {
	t := &Turn{
		client: c, threadID: p.ThreadID, note: note, sent: make(chan struct{}),
		begun: make(chan struct{}), ended: make(chan struct{}),
	}
	var calling context.Context
	calling, t.forget = context.WithCancel(context.Background())
	c.mu.Lock()
	busy := c.turns[p.ThreadID] != nil
	if !busy {
		c.turns[p.ThreadID] = t
	}
	c.mu.Unlock()
	if busy {
		t.forget()
		return nil, errBusy
	}
	t.call = c.peer.Start(calling, apptypes.CallTurnStart, p) // it may wait for the app-server to read, so without the lock
	close(t.sent)
	go func() {
		<-t.call.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		t.answered()
	}()
	return t, nil
}

// Begun is closed when the app-server has begun the turn, and takes messages to it, or has refused to.
func (t *Turn) Begun() <-chan struct{} { return t.begun }

// Ended is closed when the turn has ended, or was refused. It may stay open if the connection ends.
func (t *Turn) Ended() <-chan struct{} { return t.ended }

// ID returns the turn's id, "" before it has begun.
func (t *Turn) ID() string {
	t.client.mu.Lock()
	defer t.client.mu.Unlock()
	return t.id
}

// Err returns why the app-server did not begin the turn, nil if it has or may still do so.
func (t *Turn) Err() error {
	t.client.mu.Lock()
	defer t.client.mu.Unlock()
	return t.err
}

// Result returns the end of the turn, nil before it.
func (t *Turn) Result() *apptypes.Turn {
	t.client.mu.Lock()
	defer t.client.mu.Unlock()
	return t.result
}

// Turn runs a turn as [Client.Begin] does, and returns its end. A turn that is not completed is an
// [*EndError], and its end is returned, too. When ctx ends, Turn interrupts the turn, waits for its end
// for at most ten seconds, and returns the cause of ctx.
func (c *Client) Turn(ctx context.Context, p *apptypes.TurnParams, note func(method string, n *apptypes.Note)) (*apptypes.Turn, error) {
	t, err := c.Begin(p, note)
	if err != nil {
		return nil, err
	}
	err = c.wait(ctx, t.ended)
	if err != nil && ctx.Err() != nil {
		limited, stop := context.WithTimeout(context.WithoutCancel(ctx), interruptLimit)
		defer stop()
		if c.wait(limited, t.begun) == nil && t.Err() == nil {
			_ = c.Interrupt(limited, t.threadID, t.ID()) // refused if the turn has just ended by itself
			_ = c.wait(limited, t.ended)
		}
		return t.Result(), context.Cause(ctx)
	}
	if err == nil {
		err = t.Err()
	}
	if err != nil {
		return nil, err
	}
	end := t.Result()
	if end.Status != apptypes.TurnStatusCompleted {
		return end, &EndError{Status: end.Status, Reason: end.Error}
	}
	return end, nil
}

// wait waits for a channel, the end of the context or that of the connection.
func (c *Client) wait(ctx context.Context, what <-chan struct{}) error {
	select {
	case <-what:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.done:
	}
	select { // what came before the end counts
	case <-what:
		return nil
	default:
	}
	if c.err != nil {
		return fmt.Errorf("codex app-server has ended: %w (%w)", jsonrpc.ErrClosed, c.err)
	}
	return fmt.Errorf("codex app-server has ended: %w", jsonrpc.ErrClosed)
}

// shut closes a channel, once. The client's lock is held.
func shut(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// answered records the answer to the call, which has come. The client's lock is held.
func (t *Turn) answered() {
	var reply apptypes.TurnReply
	err := t.call.Result(&reply)
	switch {
	case t.result != nil || t.err != nil:
	case err != nil:
		t.err = err
		t.over()
	default:
		t.name(reply.Turn.ID)
	}
}

// name records the id, once. The answer and turn/started tell it, in any order. The client's lock is held.
func (t *Turn) name(id string) {
	if t.id == "" && id != "" {
		t.id = id
		shut(t.begun)
	}
}

// over ends the turn. The client's lock is held.
func (t *Turn) over() {
	if t.client.turns[t.threadID] == t {
		delete(t.client.turns, t.threadID)
	}
	shut(t.begun)
	shut(t.ended)
	t.forget()
}

// follow passes a notification to the turn that it is about.
func (c *Client) follow(method string, n *apptypes.Note) {
	id := n.TurnID
	if n.Turn != nil {
		id = n.Turn.ID
	}
	t := c.about(n.ThreadID, id, method)
	if t == nil {
		return
	}
	if t.note != nil {
		t.note(method, n)
	}
	if method == apptypes.NoteTurnCompleted && n.Turn != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		t.result = n.Turn
		t.over()
	}
}

// about returns the running turn with an id, or nil. Codex sends turn/started first, which names a turn
// without an answer.
func (c *Client) about(threadID, id, method string) *Turn {
	c.mu.Lock()
	t := c.turns[threadID]
	c.mu.Unlock()
	if t == nil || id == "" {
		return nil
	}
	<-t.sent
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-t.call.Done():
		t.answered()
	default:
	}
	if method == apptypes.NoteTurnStarted {
		t.name(id)
	}
	if t.id != id || t.err != nil || t.result != nil {
		return nil
	}
	return t
}
