package thread

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// Thread is an open thread. It is safe for concurrent use.
type Thread struct {
	conversation engine.Conversation
	host         *host
	principal    string
	stays        bool            // open however long nobody uses it
	shares       map[*Share]bool // that hold it open, all of the principal; Table.mu guards it

	mu     sync.Mutex
	queue  queue
	closed bool
	idle   *time.Timer // closes the thread; each use sets it again

	// folders are the real paths of the working folder and of those that its call chose, if its commands may write there.
	folders []string
	// What the thread may not have without an approval, what records one, nil if there is nothing to
	// approve, and what the settings say. Only its turns, which run one after another, use them.
	asks    protocol.AccessRequest
	granted func()
	full    setting.FullAccess
	table   *Table // nil for a trusted caller
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
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	return t.host.configured
}

// Usage returns the tokens that the thread has used by the engine's last count. It returns
// nil before the first count.
func (t *Thread) Usage() *protocol.TokenUsage {
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	return t.host.used
}

// Log returns what the thread has done.
func (t *Thread) Log() *transcript.Log { return t.host.kept }

// Reviews reports whether the engine can review in the thread under any policy.
func (t *Thread) Reviews() bool { return t.host.traits.Reviews }

// Busy reports whether a turn is running.
func (t *Thread) Busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queue.running() != nil
}

// Stop interrupts the running turn, or the first queued one, without waiting. It returns a
// channel that is closed when that turn has ended, or nil if there is no turn.
func (t *Thread) Stop(cause error) (ended <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 || t.queue[0].turn == nil || t.closed {
		return nil
	}
	t.queue[0].turn.Interrupt(cause)
	return t.queue[0].left
}

// Interrupt interrupts the running turn and waits for its end. It returns false if no turn
// is running.
func (t *Thread) Interrupt(ctx context.Context) (bool, error) {
	ended := t.Stop(ErrInterrupted)
	if ended == nil {
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
func (t *Thread) Attach(p *approve.Place) (leave func()) { return t.host.board.Attach(p) }

// Warn logs a message and sends it as an event of a submission.
func (t *Thread) Warn(submission, words string) {
	t.host.log.Warn(words, "thread", t.ID())
	t.host.deliver(submission, protocol.BackgroundEvent{Message: words}, "")
}

// Listen adds a listener, until stop is called. It receives the events that were kept for the first listener,
// and then every event.
func (t *Thread) Listen(l Listener) (stop func()) {
	h := t.host
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners.add(&l)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.listeners.all, &l)
	}
}

// end closes the engine's conversation after the queued turns, and reports the end to the desk. Later turns fail.
func (t *Thread) end(ctx context.Context) error {
	last := t.join(nil)
	defer t.leave(last)
	err := t.take(ctx, last)
	if err == nil {
		t.mu.Lock()
		t.closed = true
		t.idle.Stop()
		t.mu.Unlock()
		err = t.release()
	}
	t.host.show(protocol.ShutdownComplete{})
	return err
}

// release closes the log and the engine's conversation.
func (t *Thread) release() error {
	t.host.kept.Close()
	return t.conversation.Close()
}
