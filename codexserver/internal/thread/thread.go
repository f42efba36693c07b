package thread

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// Thread is an open thread, and what its engine calls. It is safe for concurrent use.
type Thread struct {
	conversation engine.Conversation
	table        *Table
	board        *approve.Board
	traits       engine.Traits
	kept         *transcript.Log
	shares       map[*Share]bool // that hold it open, all of the principal; Table.mu guards it

	first       atomic.Pointer[seat] // of the queue
	submissions atomic.Int64         // messages, approvals and interrupts so far

	mu         sync.Mutex // also keeps events in the order of Emit
	queue      queue
	rest       *seat // who hears what comes before the first turn and between turns
	closed     bool
	idle       *time.Timer // closes the thread; each use sets it again
	listeners  listeners
	configured protocol.SessionConfigured
	about      approval.Thread      // for desks; its id is "" before the thread has begun
	used       *protocol.TokenUsage // the engine's last count, or nil

	// folders are the real paths of the working folder and of those that its call chose, if its commands may write there.
	folders []string
	// What the thread may not have without an approval, zero if there is nothing to approve, and what the settings say. Only
	// its turns, which run one after another, use them.
	asks approval.Access
	full setting.FullAccess
}

var (
	// ErrInterrupted is the cause of an interrupt that the client requested.
	ErrInterrupted = errors.New("interrupted by the client")
	// errClosed is the error of a turn of a closed thread.
	errClosed = errors.New("the conversation was closed")
	// ErrStopped is the cause of an interrupt that came from the desk.
	ErrStopped = errors.New(approve.Stopped)
)

// ID returns the thread's id.
func (t *Thread) ID() string { return t.conversation.ID() }

// Info returns the engine's description of the thread when it began, with its current folder.
func (t *Thread) Info() protocol.SessionConfigured {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.configured
}

// Log returns what the thread has done.
func (t *Thread) Log() *transcript.Log { return t.kept }

// Stop interrupts the running turn, or the first queued one, without waiting. It returns a
// channel that is closed when that turn has ended, or nil if there is no turn. A desk may call it that hears an event.
func (t *Thread) Stop(cause error) (ended <-chan struct{}) {
	q := t.first.Load()
	if q == nil || q.closing {
		return nil
	}
	q.Turn.Interrupt(cause)
	return q.left
}

// Interrupt interrupts the running turn and waits for its end, or ends what else works in the thread. It returns false if
// nothing does.
func (t *Thread) Interrupt(ctx context.Context) (bool, error) {
	ended := t.Stop(ErrInterrupted)
	if ended == nil {
		if s, is := t.conversation.(engine.Stopper); is {
			return s.Stop(ctx)
		}
		return false, nil
	}
	select {
	case <-ended:
		return true, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

// Attach adds a place for the questions of the thread, including open ones, until leave is
// called.
func (t *Thread) Attach(p *approve.Place) (leave func()) { return t.board.Attach(p) }

// Warn logs a message and sends it as an event of a submission.
func (t *Thread) Warn(submission, words string) {
	t.table.log.Warn(words, "thread", t.ID())
	t.deliver(submission, protocol.BackgroundEvent{Message: words}, "")
}

// Listen adds a listener, until stop is called. It receives the events that were kept for the first listener,
// and then every event.
func (t *Thread) Listen(l Listener) (stop func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listeners.add(&l)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.listeners.all, &l)
	}
}

// end closes the engine's conversation after the queued turns, and reports the end to the desk. Later turns fail.
func (t *Thread) end(ctx context.Context) error {
	last := t.join(&seat{closing: true})
	defer t.leave(last)
	err := t.take(ctx, last)
	if err == nil {
		t.mu.Lock()
		t.closed = true
		t.idle.Stop()
		t.mu.Unlock()
		err = t.release()
	}
	t.show(protocol.ShutdownComplete{})
	return err
}

// release closes the log and the engine's conversation.
func (t *Thread) release() error {
	t.kept.Close()
	return t.conversation.Close()
}
