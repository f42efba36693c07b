package thread

import (
	"context"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// idleLimit is how long a thread stays open that nobody uses. [Share.Revive] resumes it later.
const idleLimit = time.Hour

// Stay keeps the thread open however long nobody uses it, for a client that cannot resume it.
func (t *Thread) Stay() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stays = true
}

// closeIdle closes a thread that nobody has used for [idleLimit], if it has a file.
func (t *Table) closeIdle(th *Thread, r engine.Resumer) {
	t.reviving <- struct{}{} // nobody resumes the thread before it is closed
	defer func() { <-t.reviving }()
	_, err := r.Find(context.Background(), th.ID())
	t.mu.Lock()
	th.mu.Lock()
	used := th.idle.Stop() || len(th.queue) > 0 // the timer was set again
	closes := err == nil && !used && !th.stays && !th.closed
	if closes {
		th.closed = true
		delete(t.threads, CanonicalID(th.ID()))
	} else if !th.closed {
		th.idle.Reset(idleLimit)
	}
	th.mu.Unlock()
	t.mu.Unlock()
	if closes {
		if err := th.release(); err != nil {
			t.log.Warn("closing an idle conversation", "thread", th.ID(), "error", err)
		}
		th.host.show(protocol.ShutdownComplete{})
	}
}
