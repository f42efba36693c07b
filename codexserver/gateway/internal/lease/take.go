package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// maxAttempts bounds how often Take tries.
	maxAttempts = 5
	// retryInterval is the time between two attempts.
	retryInterval = 50 * time.Millisecond
)

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Take takes the lease of a user if it is free. It returns the lease that holds then, which
// may be that of another node.
func (h *Holder) Take(ctx context.Context, user string) (Lease, error) {
	x, err := h.begin(ctx, user)
	if err != nil {
		return Lease{}, err
	}
	if x.taken() {
		return x.lease, nil
	}
	defer h.end(x)
	n, mine := h.o.Describe(), x.lease
	mine.Node, mine.ID = n.Name, h.o.ID
	for range maxAttempts {
		got, err := h.leases.take(ctx, mine)
		switch {
		case err == nil && got.ID == mine.ID && got.Term == mine.Term:
			got.Address = n.Address
			return got, h.add(x, got)
		case err == nil:
			return got, nil
		case !errors.Is(err, errBehind) && !placement.Changed(err): // else another node was faster
			return Lease{}, fmt.Errorf("take the lease of %s: %w", user, err)
		}
		if err := pause(ctx, retryInterval); err != nil {
			return Lease{}, err
		}
	}
	return Lease{}, fmt.Errorf("take the lease of %s: other nodes take and release it all the time", user)
}

// begin returns the lease that the node holds already, or else one that it is taking. Then no other call takes it before
// end. If a lease is just being taken or lost, begin waits until that has ended.
func (h *Holder) begin(ctx context.Context, user string) (*held, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.closing {
		x := h.held[user]
		switch {
		case x == nil && h.expired():
			return nil, errNoEntry
		case x == nil:
			x = &held{lease: Lease{User: user, Term: h.term}, open: map[context.Context]context.CancelCauseFunc{},
				changes: make(chan struct{})}
			h.held[user] = x
			return x, nil
		case x.changes == nil:
			return x, nil
		}
		changes := x.changes
		h.mu.Unlock()
		select {
		case <-changes:
		case <-ctx.Done():
		}
		h.mu.Lock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, errNoEntry
}

// end lets others take the lease, unless the node holds it now.
func (h *Holder) end(x *held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !x.taken() {
		delete(h.held, x.lease.User)
		close(x.changes)
	}
}

// add makes a lease that was taken one that the node holds.
func (h *Holder) add(x *held, l Lease) error {
	h.mu.Lock()
	if h.closing || h.expired() || h.term != l.Term {
		h.mu.Unlock()
		return errNoEntry
	}
	x.lease = l
	close(x.changes)
	x.changes = nil
	h.mu.Unlock()
	h.publishing.Lock()
	defer h.publishing.Unlock()
	h.renewed(l.User)
	return nil
}

// take makes the bucket name the process and the term of mine if nobody has the user. It returns the lease that holds then.
func (l *Leases) take(ctx context.Context, mine Lease) (Lease, error) {
	value, err := json.Marshal(Lease{Node: mine.Node, ID: mine.ID, Term: mine.Term})
	if err != nil {
		return Lease{}, err
	}
	before, err := l.get(ctx, mine.User)
	// else the answer to an earlier attempt was lost
	if err == nil && (before.ID != mine.ID || before.Term != mine.Term) {
		var got Lease
		if got, err = l.settle(ctx, before); err == nil {
			return got, nil
		}
	}
	if err != nil && !errors.Is(err, ErrFree) {
		return Lease{}, err
	}
	if before.Epoch == 0 {
		mine.Epoch, err = l.users.Create(ctx, mine.User, value)
	} else {
		mine.Epoch, err = l.users.Update(ctx, mine.User, value, before.Epoch)
	}
	return mine, err
}

// remove removes a lease of this process from the bucket, if it is still there.
func (l *Leases) remove(ctx context.Context, mine Lease) error {
	err := l.users.Purge(ctx, mine.User, jetstream.LastRevision(mine.Epoch), jetstream.PurgeTTL(markTime))
	if placement.Changed(err) {
		return nil
	}
	return err
}

const (
	// markTime is how long the bucket keeps that a lease was removed.
	markTime = time.Minute
	// sweepInterval is how often a node removes leases that it has not taken, and removeTimeout bounds the removal of one.
	sweepInterval = time.Second
	removeTimeout = 2 * time.Second
)

// watch follows the bucket of users: it notices a lease of this node that somebody else replaces, and removes what names this
// node although the node does not hold it: the answer to its Take or the request of its Release was lost.
func (h *Holder) watch() {
	for ; h.ctx.Err() == nil; _ = pause(h.ctx, sweepInterval) {
		if err := h.follow(); err != nil && h.ctx.Err() == nil {
			h.o.Logger.Warn("the leases of users cannot be watched", "error", err)
		}
	}
}

// follow follows the bucket until the connection ends.
func (h *Holder) follow() error {
	watcher, err := h.leases.users.WatchAll(h.ctx)
	if err != nil {
		return err
	}
	defer func() { _ = watcher.Stop() }() // the connection may have ended
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	named := map[string]Lease{} // those that name this process
	for {
		select {
		case entry, ok := <-watcher.Updates():
			switch {
			case !ok:
				return errors.New("the connection has ended")
			case entry == nil: // these were all
				continue
			}
			if got, err := read(entry); err == nil && got.ID == h.o.ID {
				named[got.User] = got
			} else {
				delete(named, entry.Key())
			}
			h.replaced(entry)
		case <-tick.C:
			for _, l := range named {
				h.sweep(l)
			}
		case <-h.ctx.Done():
			return nil
		}
	}
}

// replaced stops the worker of a user whose lease is another one now.
func (h *Holder) replaced(entry jetstream.KeyValueEntry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x := h.held[entry.Key()]; x != nil && x.changes == nil && x.lease.Epoch < entry.Revision() {
		h.o.Logger.Warn("the lease of a user is lost", "principal", entry.Key(), "epoch", x.lease.Epoch, "error",
			"somebody has replaced or removed it")
		h.loseUser(x)
	}
}

// sweep removes a lease from the bucket that the node does not hold.
func (h *Holder) sweep(l Lease) {
	h.mu.Lock()
	used := h.held[l.User] != nil
	h.mu.Unlock()
	if used {
		return
	}
	ctx, cancel := context.WithTimeout(h.ctx, removeTimeout)
	defer cancel()
	if err := h.leases.remove(ctx, l); err != nil {
		h.o.Logger.Warn("a lease could not be removed", "principal", l.User, "error", err)
	}
}
