package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/metrics"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/nats-io/nats.go/jetstream"
)

// HolderOptions configure a [Holder]. All but Renewed and Clock are required.
type HolderOptions struct {
	// ID is that of the process.
	ID string
	// Describe returns what the process writes about itself, apart from the ID and the term. The holder calls it for
	// each renewal.
	Describe func() placement.Node
	// Lost stops the worker of a user, and returns when it has ended. The holder calls it when
	// a lease is lost or about to be.
	Lost func(user string)
	// Renewed learns until when the node holds the lease of a user, on the clock. Take calls it
	// before it returns. Default: nobody does.
	Renewed func(user string, deadline time.Duration)
	// Clock returns the time since some moment. It must go on while the machine is suspended.
	// Default: that of the system.
	Clock func() time.Duration
	// Metrics counts the leases that are lost, and Logger receives them.
	Metrics *metrics.Metrics
	Logger  *slog.Logger
}

// Holder holds the entry of a process and the leases of its users. It is safe for concurrent use.
type Holder struct {
	leases *Leases
	o      HolderOptions

	stop    context.CancelFunc
	ctx     context.Context // ends with stop
	running sync.WaitGroup

	publishing sync.Mutex // held while the entry is written, and Renewed learns of it

	mu       sync.Mutex
	term     uint64           // 0 without an entry
	revision uint64           // of the entry, or of the one that it replaces
	deadline time.Duration    // of the entry, on the clock
	held     map[string]*held // by user
	closing  bool
}

// held is a lease of this node, or one that it is taking, which has no epoch yet.
type held struct {
	lease   Lease
	open    map[context.Context]context.CancelCauseFunc // of Hold
	leaving bool                                        // Hold refuses
	// changes is not nil while the lease is taken, and from the time when it is lost on. It is closed when Take has
	// ended, or Lost has returned.
	changes chan struct{}
}

func (x *held) taken() bool { return x.lease.Epoch != 0 }

// ErrLost is the cause of a context of [Holder.Hold] whose lease was lost.
var ErrLost = errors.New("this node has lost the lease of the user")

var errNoEntry = errors.New("this node ends, or has lost its own entry")

// NewHolder returns a holder without an entry. The caller must call Join before Take, and close it.
func (l *Leases) NewHolder(o HolderOptions) *Holder {
	if o.Clock == nil {
		o.Clock = sinceBoot
	}
	if o.Renewed == nil {
		o.Renewed = func(string, time.Duration) {}
	}
	h := &Holder{leases: l, o: o, held: map[string]*held{}}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Join makes the entry of the process. From then on the holder renews it.
func (h *Holder) Join(ctx context.Context) error {
	for err := h.Publish(ctx); err != nil; err = h.Publish(ctx) {
		if pause(ctx, h.leases.ttl/6) != nil { // NATS may have no leader for a moment
			return fmt.Errorf("publish this node: %w", err)
		}
	}
	h.running.Go(func() { h.regularly(func() { h.expire() }) })
	h.running.Go(func() { h.regularly(h.renew) })
	h.running.Go(h.watch)
	return nil
}

// Publish writes the entry of the process as it is now, which renews it. At most one call does so at a time: otherwise
// an older state could replace a newer one.
func (h *Holder) Publish(ctx context.Context) error {
	h.publishing.Lock()
	defer h.publishing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, h.leases.ttl/6)
	defer cancel()
	n := h.o.Describe()
	h.mu.Lock()
	term, last := h.term, h.revision
	// workers of the term before
	ending := term == 0 && slices.ContainsFunc(slices.Collect(maps.Values(h.held)), (*held).taken)
	h.mu.Unlock()
	if ending || h.ctx.Err() != nil {
		return errNoEntry
	}
	n.ID, n.Term = h.o.ID, term
	sent := h.o.Clock()
	revision, err := h.leases.Nodes.Write(ctx, n, last)
	if err != nil {
		if ctx.Err() == nil {
			h.compare(ctx, term, last)
		}
		return err
	}
	h.mu.Lock()
	h.revision = revision
	if h.term != term { // it was lost meanwhile
		h.mu.Unlock()
		return errNoEntry
	}
	h.term, h.deadline = cmp.Or(term, revision), sent+h.fence()
	h.mu.Unlock()
	h.renewed(h.Users()...)
	return nil
}

// compare looks at the entry after a write has failed that was to replace the value with the number last.
func (h *Holder) compare(ctx context.Context, term, last uint64) {
	got, err := h.leases.Nodes.Get(ctx, h.o.ID)
	gone := errors.Is(err, jetstream.ErrKeyNotFound)
	if err != nil && !gone {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.term == term && term != 0 && (gone || got.Term != term) {
		h.lose("another process has ended it, or it has expired")
	}
	if got.Revision > last || gone {
		// Perhaps an earlier write has arrived, but its answer was lost. The time when it was
		// sent is not known, so it does not count.
		h.revision = got.Revision
	}
}

// renewed reports until when the node holds the leases of users. The caller holds h.publishing, so an older deadline never
// follows a newer one.
func (h *Holder) renewed(users ...string) {
	h.mu.Lock()
	deadline := h.deadline
	h.mu.Unlock()
	for _, user := range users {
		h.o.Renewed(user, deadline)
	}
}

// fence returns after which time without a renewal an entry counts as lost.
func (h *Holder) fence() time.Duration { return h.leases.ttl * 2 / 3 }

// expired reports whether the entry counts as lost. The caller holds h.mu.
func (h *Holder) expired() bool {
	return h.term == 0 || h.o.Clock() >= h.deadline
}

// lookInterval is how often the deadline of the entry is looked at.
const lookInterval = 100 * time.Millisecond

// regularly does something at short intervals until the end.
func (h *Holder) regularly(do func()) {
	tick := time.NewTicker(min(lookInterval, h.leases.ttl/30))
	defer tick.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// expire stops all workers if the entry could not be renewed, and reports whether it is time to renew it. It does not wait for
// NATS.
func (h *Holder) expire() (due bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.term != 0 && h.expired() {
		h.lose("it could not be renewed in time")
	}
	return h.term == 0 || h.o.Clock() >= h.deadline-h.fence()+h.leases.ttl/3
}

// renew renews the entry if it is time, and makes another one when the workers of one that was lost have ended.
func (h *Holder) renew() {
	if !h.expire() {
		return
	}
	if err := h.Publish(h.ctx); err != nil && h.ctx.Err() == nil {
		h.o.Logger.Warn("the entry of this node was not renewed", "error", err)
		_ = pause(h.ctx, retryInterval)
	}
}

// lose gives up the entry, and stops all workers. why is for the log. The caller holds h.mu.
func (h *Holder) lose(why string) {
	h.o.Logger.Warn("the entry of this node is lost", "term", h.term, "users", len(h.held), "error", why)
	h.term = 0
	for _, x := range h.held {
		h.loseUser(x)
	}
}

// loseUser stops the worker of a lease that is lost. The caller holds h.mu. Close waits for the end.
func (h *Holder) loseUser(x *held) {
	if x.changes == nil {
		x.changes = make(chan struct{}) // from now on Hold refuses
		h.o.Metrics.Lost()
		go h.stopWorker(x)
	}
}

// Hold returns a context that derives from ctx and ends when the lease is lost. It fails
// unless the node holds the lease of the user with this epoch. The caller must call release
// once when the request has ended, which ends the context.
func (h *Holder) Hold(
	ctx context.Context, user string, epoch uint64,
) (holding context.Context, release func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.held[user]
	if x == nil || x.changes != nil || x.lease.Epoch != epoch || x.leaving || h.expired() {
		return nil, nil, fmt.Errorf("this node does not hold the lease of %s with the epoch %d", user, epoch)
	}
	holding, cancel := context.WithCancelCause(ctx)
	x.open[holding] = cancel
	return holding, func() {
		cancel(nil)
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(x.open, holding)
	}, nil
}

// Epoch returns the epoch of a user's lease, or 0 if the node does not hold it.
func (h *Holder) Epoch(user string) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x := h.held[user]; x != nil && x.changes == nil {
		return x.lease.Epoch
	}
	return 0
}

// Users returns the users whose leases the node holds.
func (h *Holder) Users() (users []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for user, x := range h.held {
		if x.changes == nil {
			users = append(users, user)
		}
	}
	return users
}

// Release gives back the lease of a user. It first stops the worker, as [HolderOptions].Lost does. It keeps the lease if keep
// returns true for the number of contexts of [Holder.Hold] that have not ended. keep may be nil.
func (h *Holder) Release(ctx context.Context, user string, keep func(open int) bool) error {
	h.mu.Lock()
	x := h.held[user]
	if x == nil || x.changes != nil || keep != nil && keep(len(x.open)) {
		h.mu.Unlock()
		return nil
	}
	x.changes = make(chan struct{}) // from now on Hold refuses
	h.mu.Unlock()
	h.stopWorker(x)
	return h.leases.remove(ctx, x.lease)
}

// HandOver gives back the lease of a user whose worker may be interrupted now, for another node. From its
// begin Hold refuses, so that fronts send requests that come meanwhile to that node. Requests that are
// open get a moment to end. If may then returns false, the node keeps the lease.
func (h *Holder) HandOver(ctx context.Context, user string, may func() bool) error {
	h.mu.Lock()
	x := h.held[user]
	if x == nil || x.changes != nil || x.leaving {
		h.mu.Unlock()
		return nil
	}
	x.leaving = true
	h.mu.Unlock()
	for range settleAttempts {
		h.mu.Lock()
		open := len(x.open)
		h.mu.Unlock()
		if open == 0 || pause(ctx, retryInterval) != nil {
			break
		}
	}
	if !may() {
		h.mu.Lock()
		defer h.mu.Unlock()
		x.leaving = false
		return nil
	}
	return h.Release(ctx, user, nil)
}

// settleAttempts bounds how long HandOver waits for open requests. It is much shorter than the time for which
// a front sends a request again.
const settleAttempts = 10

// stopWorker ends the contexts of a lease that is lost, and then the worker.
func (h *Holder) stopWorker(x *held) {
	h.mu.Lock()
	for _, cancel := range x.open {
		cancel(ErrLost)
	}
	h.mu.Unlock()
	h.o.Lost(x.lease.User)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, x.lease.User)
	close(x.changes)
}

// Close releases all leases, at the same time, removes the entry, and ends the holder. It waits for the ends of the
// workers, also of those that something else stops.
func (h *Holder) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closing = true
	all := slices.DeleteFunc(slices.Collect(maps.Values(h.held)), func(x *held) bool { return !x.taken() })
	h.mu.Unlock()
	failed := make([]error, len(all))
	var releasing sync.WaitGroup
	for i, x := range all {
		releasing.Go(func() {
			failed[i] = h.Release(ctx, x.lease.User, nil)
			h.mu.Lock()
			gone := x.changes
			h.mu.Unlock()
			<-gone
		})
	}
	releasing.Wait()
	h.stop()
	h.running.Wait()
	h.publishing.Lock() // from now on Publish refuses
	defer h.publishing.Unlock()
	h.mu.Lock()
	h.term = 0
	h.mu.Unlock()
	return errors.Join(append(failed, h.leases.Nodes.Remove(ctx, h.o.ID))...)
}
