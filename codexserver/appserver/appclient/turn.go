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
	return c.thread(ctx, apptypes.CallThreadStart, p)
}

// ResumeThread continues the thread p.ThreadID, which may be of another process.
func (c *Client) ResumeThread(ctx context.Context, p *apptypes.ThreadParams) (*apptypes.ThreadReply, error) {
	return c.thread(ctx, apptypes.CallThreadResume, p)
}

// ForkThread begins a thread with a copy of the thread p.ThreadID.
func (c *Client) ForkThread(ctx context.Context, p *apptypes.ThreadParams) (*apptypes.ThreadReply, error) {
	return c.thread(ctx, apptypes.CallThreadFork, p)
}

func (c *Client) thread(ctx context.Context, method string, p *apptypes.ThreadParams) (*apptypes.ThreadReply, error) {
	r := &apptypes.ThreadReply{}
	if err := c.Call(ctx, method, p, r); err != nil {
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

// turn is a turn that [Client.Turn] waits for. The client's lock guards id and result.
type turn struct {
	call   *jsonrpc.Call
	note   func(string, *apptypes.Note)
	id     string
	named  chan struct{} // closed when id is set
	result *apptypes.Turn
	ended  chan struct{} // closed when result is set
}

// errBusy is the error of a second turn.
var errBusy = errors.New("appclient: a turn of this thread runs")

// Turn runs a turn of a thread that this client started or resumed, and returns its end. A turn that
// is not completed is an [*EndError], and its end is returned, too. Note, which may be nil, gets the
// notifications of the turn as [Options].Note does, and none of its sub-agents. When ctx ends, Turn
// interrupts the turn, waits for its end for at most ten seconds, and returns the cause of ctx. A
// thread has one turn at a time.
func (c *Client) Turn(ctx context.Context, p *apptypes.TurnParams, note func(method string, n *apptypes.Note)) (*apptypes.Turn, error) {
	sent, forget := context.WithCancel(context.WithoutCancel(ctx))
	defer forget() // notifications wait for the answer
	t := &turn{note: note, named: make(chan struct{}), ended: make(chan struct{})}
	c.mu.Lock() // so that a notification of the turn finds the call
	if c.turns[p.ThreadID] != nil {
		c.mu.Unlock()
		return nil, errBusy
	}
	t.call = c.peer.Start(sent, apptypes.CallTurnStart, p)
	c.turns[p.ThreadID] = t
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.turns, p.ThreadID)
	}()

	err := c.await(ctx, t)
	if ctx.Err() != nil && err != nil {
		limited, stop := context.WithTimeout(context.WithoutCancel(ctx), interruptLimit)
		defer stop()
		if c.stop(limited, p.ThreadID, t) == nil {
			return t.result, context.Cause(ctx)
		}
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	if t.result.Status != apptypes.TurnStatusCompleted {
		return t.result, &EndError{Status: t.result.Status, Reason: t.result.Error}
	}
	return t.result, nil
}

// await waits until the turn has ended.
func (c *Client) await(ctx context.Context, t *turn) error {
	if err := c.wait(ctx, t.call.Done()); err != nil {
		return err
	}
	if _, err := t.answer(); err != nil {
		return err
	}
	return c.wait(ctx, t.ended)
}

// stop interrupts the turn and waits until it has ended.
func (c *Client) stop(ctx context.Context, threadID string, t *turn) error {
	if err := c.wait(ctx, t.call.Done()); err != nil {
		return err
	}
	id, err := t.answer()
	if err != nil {
		return err
	}
	if id == "" {
		if err := c.wait(ctx, t.named); err != nil {
			return err
		}
		c.mu.Lock()
		id = t.id
		c.mu.Unlock()
	}
	_ = c.Interrupt(ctx, threadID, id) // refused if the turn has just ended by itself
	return c.wait(ctx, t.ended)
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

// answer returns the id in the answer to the call, which has come. Some versions tell it only with
// turn/started; it is "" then.
func (t *turn) answer() (id string, err error) {
	var reply apptypes.TurnReply
	err = t.call.Result(&reply)
	return reply.Turn.ID, err
}

// follow passes a notification to the turn that it is about. The answer to the start of a turn comes
// before its notifications, and may not have been read yet.
func (c *Client) follow(method string, n *apptypes.Note) {
	id := n.TurnID
	if n.Turn != nil {
		id = n.Turn.ID
	}
	c.mu.Lock()
	t := c.turns[n.ThreadID]
	c.mu.Unlock()
	if t == nil || id == "" {
		return
	}
	<-t.call.Done()
	name, err := t.answer()
	if err != nil {
		return
	}
	c.mu.Lock()
	if t.id == "" {
		if name == "" && method == apptypes.NoteTurnStarted {
			name = id
		}
		if name != "" {
			t.id = name
			close(t.named)
		}
	}
	mine := t.id == id && t.result == nil
	c.mu.Unlock()
	if !mine {
		return
	}
	if t.note != nil {
		t.note(method, n)
	}
	if method == apptypes.NoteTurnCompleted && n.Turn != nil {
		c.mu.Lock()
		t.result = n.Turn
		c.mu.Unlock()
		close(t.ended)
	}
}
