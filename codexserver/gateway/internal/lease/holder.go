package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"
)

// HolderOptions configure a [Holder]. Logger and Lost are required.
type HolderOptions struct {
	// Node is the name of this node, and ID that of its process.
	Node, ID string
	// Lost stops the worker of a user, and returns when it has ended. The holder calls it when
	// a lease is lost or about to be.
	Lost func(user string)
	// Renewed learns until when the node holds the lease of a user, on the clock. Take calls it
	// before it returns. It may be nil.
	Renewed func(user string, deadline time.Duration)
	// Clock returns the time since some moment. It must go on while the machine is suspended.
	// Default: that of the system.
	Clock func() time.Duration
	// Logger receives the leases that are lost.
	Logger *slog.Logger
}

// Holder holds the leases of a node, and renews them. It is safe for concurrent use.
type Holder struct {
	leases *Leases
	o      HolderOptions

	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	held    map[string]*held // by user
	closing bool
}

// held is a lease of this node.
type held struct {
	lease    Lease
	revision uint64        // of the latest renewal
	deadline time.Duration // on the clock
	ctx      context.Context
	cancel   context.CancelCauseFunc
	open     int // contexts of Hold that have not ended
	renewing bool
	leaving  bool          // Hold refuses
	gone     chan struct{} // closed when Lost has returned; nil before the lease is lost
}

// ErrLost is the cause of a context of [Holder.Hold] whose lease was lost.
var ErrLost = errors.New("this node has lost the lease of the user")

// NewHolder returns a holder without leases. The caller must close it.
func (l *Leases) NewHolder(o HolderOptions) *Holder {
	if o.Clock == nil {
		o.Clock = newClock()
	}
	ctx, stop := context.WithCancel(context.Background())
	h := &Holder{leases: l, o: o, stop: stop, held: map[string]*held{}}
	if l.ttl > 0 {
		h.running.Go(func() { h.watch(ctx) })
	}
	return h
}

// Take takes the lease of a user if it is free. It returns the lease that holds then, which
// may be that of another node.
func (h *Holder) Take(ctx context.Context, user string) (Lease, error) {
	for range 3 {
		if got, err := h.own(ctx, user); err != nil || got != nil {
			return *got, err
		}
		mine := Lease{User: user, Node: h.o.Node, ID: h.o.ID}
		value, err := json.Marshal(mine)
		if err != nil {
			return Lease{}, err
		}
		sent := h.o.Clock()
		revision, err := h.leases.kv.Create(ctx, user, value)
		if err == nil {
			mine.Epoch = revision
			h.renewed(user, sent)
			return mine, h.add(mine, sent)
		}
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return Lease{}, fmt.Errorf("take the lease of %s: %w", user, err)
		}
		got, revision, err := h.leases.get(ctx, user)
		if errors.Is(err, ErrFree) { // it has just expired, or a server that lags behind has answered
			if err := pause(ctx); err != nil {
				return Lease{}, err
			}
			continue
		}
		if err == nil && got.ID == h.o.ID && h.Epoch(user) != got.Epoch {
			// The answer to an earlier attempt was lost. The lease is of no use, because the
			// time of its deadline is not known.
			_ = h.leases.kv.Delete(ctx, user, jetstream.LastRevision(revision)) // else it expires
			continue
		}
		return got, err
	}
	return Lease{}, fmt.Errorf("take the lease of %s: other nodes take and release it all the time", user)
}

// pause waits before another attempt.
func pause(ctx context.Context) error {
	select {
	case <-time.After(retryInterval):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retryInterval is the time between two attempts to take a lease.
const retryInterval = 50 * time.Millisecond

// own returns the lease that the node holds already, or nil. If a lease is just being lost, it
// waits until the worker has ended.
func (h *Holder) own(ctx context.Context, user string) (*Lease, error) {
	for {
		h.mu.Lock()
		x := h.held[user]
		if h.closing {
			h.mu.Unlock()
			return &Lease{}, errClosing
		}
		if x == nil {
			h.mu.Unlock()
			return nil, nil
		}
		gone, got := x.gone, x.lease
		h.mu.Unlock()
		if gone == nil {
			return &got, nil
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return &Lease{}, ctx.Err()
		}
	}
}

var errClosing = errors.New("the node is shutting down")

// add notes a new lease, which was taken after sent.
func (h *Holder) add(l Lease, sent time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return errClosing
	}
	x := &held{lease: l, revision: l.Epoch, deadline: sent + h.fence()}
	x.ctx, x.cancel = context.WithCancelCause(context.Background())
	h.held[l.User] = x
	return nil
}

// renewed reports a lease that was taken or renewed after sent.
func (h *Holder) renewed(user string, sent time.Duration) {
	if h.o.Renewed != nil {
		h.o.Renewed(user, sent+h.fence())
	}
}

// fence returns after which time without a renewal a lease counts as lost.
func (h *Holder) fence() time.Duration { return h.leases.ttl * 2 / 3 }

// Hold returns a context that derives from ctx and ends when the lease is lost. It fails
// unless the node holds the lease of the user with this epoch. ctx must end, because that
// frees what Hold has taken.
func (h *Holder) Hold(ctx context.Context, user string, epoch uint64) (context.Context, error) {
	h.mu.Lock()
	x := h.held[user]
	if x == nil || x.gone != nil || x.lease.Epoch != epoch || x.leaving || h.expired(x) {
		h.mu.Unlock()
		return nil, fmt.Errorf("this node does not hold the lease of %s with the epoch %d", user, epoch)
	}
	x.open++
	h.mu.Unlock()
	held, cancel := context.WithCancelCause(x.ctx) // ends at once with the lease, before Lost is called
	context.AfterFunc(ctx, func() {
		cancel(context.Cause(ctx))
		h.mu.Lock()
		defer h.mu.Unlock()
		x.open--
	})
	return both{held, ctx}, nil
}

// both is a context that ends with the first one, and also has the values of the second one.
type both struct {
	context.Context
	values context.Context
}

// Value implements [context.Context].
func (b both) Value(key any) any {
	if v := b.Context.Value(key); v != nil {
		return v
	}
	return b.values.Value(key)
}

// expired reports whether a lease counts as lost. The caller holds h.mu.
func (h *Holder) expired(x *held) bool { return h.leases.ttl > 0 && h.o.Clock() >= x.deadline }

// Epoch returns the epoch of a user's lease, or 0 if the node does not hold it.
func (h *Holder) Epoch(user string) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x := h.held[user]; x != nil && x.gone == nil {
		return x.lease.Epoch
	}
	return 0
}

// Users returns the users whose leases the node holds.
func (h *Holder) Users() (users []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for user, x := range h.held {
		if x.gone == nil {
			users = append(users, user)
		}
	}
	return users
}

// Release gives back the lease of a user. It first stops the worker, as [HolderOptions].Lost
// does.
func (h *Holder) Release(ctx context.Context, user string) error {
	return h.release(ctx, user, func(*held) bool { return false })
}

// ReleaseUnused gives back the lease of a user, unless a context of [Holder.Hold] has not ended
// or used returns true.
func (h *Holder) ReleaseUnused(ctx context.Context, user string, used func() bool) error {
	return h.release(ctx, user, func(x *held) bool { return x.open > 0 || used() })
}

// HandOver gives back the lease of a user whose worker may be interrupted now, for another node. From its
// begin Hold refuses, so that fronts send requests that come meanwhile to that node. Requests that are
// open get a moment to end. If may then returns false, the node keeps the lease.
func (h *Holder) HandOver(ctx context.Context, user string, may func() bool) error {
	h.mu.Lock()
	x := h.held[user]
	if x == nil || x.gone != nil || x.leaving {
		h.mu.Unlock()
		return nil
	}
	x.leaving = true
	h.mu.Unlock()
	h.settle(ctx, x)
	if !may() {
		h.mu.Lock()
		defer h.mu.Unlock()
		x.leaving = false
		return nil
	}
	return h.Release(ctx, user)
}

const (
	// settleTimeout bounds how long HandOver waits for open requests. It is much shorter than the time for
	// which a front sends a request again.
	settleTimeout = 500 * time.Millisecond
	// settleInterval is how often it looks.
	settleInterval = 10 * time.Millisecond
)

// settle waits until no context of Hold is open, but not for streams that stay open.
func (h *Holder) settle(ctx context.Context, x *held) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	tick := time.NewTicker(settleInterval)
	defer tick.Stop()
	for {
		h.mu.Lock()
		open := x.open
		h.mu.Unlock()
		if open == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (h *Holder) release(ctx context.Context, user string, keep func(*held) bool) error {
	h.mu.Lock()
	x := h.held[user]
	if x == nil || x.gone != nil || keep(x) {
		h.mu.Unlock()
		return nil
	}
	x.gone = make(chan struct{}) // from now on Hold refuses
	h.mu.Unlock()
	h.stopWorker(x)
	h.mu.Lock()
	revision := x.revision
	h.mu.Unlock()
	err := h.leases.kv.Delete(ctx, user, jetstream.LastRevision(revision))
	if errors.Is(err, jetstream.ErrKeyExists) { // it was renewed in between, and expires
		return nil
	}
	return err
}

// lose stops the worker of a lease that is lost. why is for the log.
func (h *Holder) lose(x *held, why string) {
	h.mu.Lock()
	if x.gone != nil {
		h.mu.Unlock()
		return
	}
	x.gone = make(chan struct{})
	h.mu.Unlock()
	h.o.Logger.Warn("the lease of a user is lost", "principal", x.lease.User, "epoch", x.lease.Epoch, "error", why)
	h.stopWorker(x)
}

// stopWorker ends the contexts of a lease, whose gone is set, and then the worker.
func (h *Holder) stopWorker(x *held) {
	x.cancel(ErrLost)
	h.o.Lost(x.lease.User)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, x.lease.User)
	close(x.gone)
}

// watchInterval is how often the deadlines of leases are looked at.
const watchInterval = 100 * time.Millisecond

// watch renews the leases, and stops the workers of those that could not be renewed.
func (h *Holder) watch(ctx context.Context) {
	tick := time.NewTicker(min(watchInterval, h.leases.ttl/30))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := h.o.Clock()
		h.mu.Lock()
		for _, x := range h.held {
			switch {
			case x.gone != nil:
			case h.expired(x):
				h.running.Go(func() { h.lose(x, "it could not be renewed in time") })
			case !x.renewing && now >= x.deadline-h.fence()+h.leases.ttl/3:
				x.renewing = true
				h.running.Go(func() { h.renew(ctx, x) })
			}
		}
		h.mu.Unlock()
	}
}

// renew renews a lease once. If that fails, [Holder.watch] tries again, until the deadline.
func (h *Holder) renew(ctx context.Context, x *held) {
	ctx, cancel := context.WithTimeout(ctx, h.leases.ttl/6)
	defer cancel()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		x.renewing = false
	}()
	h.mu.Lock()
	revision, value := x.revision, x.lease
	h.mu.Unlock()
	text, err := json.Marshal(value)
	if err != nil {
		return
	}
	sent := h.o.Clock()
	next, err := h.leases.kv.Update(ctx, value.User, text, revision)
	if err != nil && ctx.Err() == nil {
		var got Lease
		if got, next, err = h.leases.get(ctx, value.User); err == nil && got.ID == value.ID && got.Epoch == value.Epoch {
			// An earlier renewal has arrived, but its answer was lost. The time when it was
			// sent is not known, so it does not count.
			h.mu.Lock()
			x.revision = next
			h.mu.Unlock()
			return
		}
		if err == nil || errors.Is(err, ErrFree) {
			h.lose(x, "another node has it, or it has expired")
		}
		return
	}
	if err == nil {
		h.mu.Lock()
		x.revision, x.deadline = next, sent+h.fence()
		gone := x.gone != nil
		h.mu.Unlock()
		if !gone {
			h.renewed(value.User, sent)
		}
	}
}

// Close releases all leases, at the same time, and ends the holder. It waits for the ends of the workers, also of
// those that something else stops.
func (h *Holder) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closing = true
	all := slices.Collect(maps.Values(h.held))
	h.mu.Unlock()
	failed := make([]error, len(all))
	var releasing sync.WaitGroup
	for i, x := range all {
		releasing.Go(func() {
			failed[i] = h.Release(ctx, x.lease.User)
			h.mu.Lock()
			gone := x.gone
			h.mu.Unlock()
			<-gone
		})
	}
	releasing.Wait()
	h.stop()
	h.running.Wait()
	return errors.Join(failed...)
}
