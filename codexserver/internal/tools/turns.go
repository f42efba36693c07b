package tools

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
)

const (
	// maxRunning is how many turns of a client may run in the background at a time.
	maxRunning = 1024
	// maxEnded is how many turns of a client are kept after their end, and maxAnswered how many of them whose
	// calls were answered: a host that gave up a call without cancelling it did not get the answer.
	maxEnded    = 256
	maxAnswered = 16
)

// Turns has the turns that tools run for one client, and who has read which result. It finds those of the clients that it
// shares them with. It is safe for concurrent use.
type Turns struct {
	*common
	ctx     context.Context // of the turns in the background
	running *sync.WaitGroup // of this client, or of all that are one user

	shared bool // by clients that are one to this server, as all of a user over HTTP without a session are
}

// common has the turns of the clients that share them.
type common struct {
	// keeper holds the threads of turns in the background. Nil leaves that to their clients.
	keeper atomic.Pointer[thread.Share]

	// mu also guards who gets the results of the turns. It is held before the lock of a turn. Whoever holds it must not wait
	// for that of a thread or of a share.
	mu      sync.Mutex
	list    []*begun // in order of creation
	clients int      // that share them, see [Turns.Share]
}

// NewTurns returns the turns of a client. Those in the background end with ctx.
func NewTurns(ctx context.Context) *Turns { return &Turns{&common{}, ctx, &sync.WaitGroup{}, false} }

// NewSharedTurns is NewTurns for the first of several clients, see [Turns.Share]. Turns in the
// background outlive their client; keeper holds their threads.
func NewSharedTurns(ctx context.Context, keeper *thread.Share) *Turns {
	ts := NewTurns(ctx)
	ts.shared = true
	ts.keeper.Store(keeper)
	return ts
}

// Rekeep lets another share hold the threads of turns in the background from now on, and returns
// the one that did.
func (ts *Turns) Rekeep(keeper *thread.Share) (before *thread.Share) { return ts.keeper.Swap(keeper) }

// begun is a turn that a tool began for a client. Its end changes nothing about who has the result: who reads it, or gives
// up waiting for it, records that.
type begun struct {
	*turn.Turn
	thread *thread.Thread
	owner  *Turns   // of the client that began the turn
	polled bool     // that client may get the result of a task
	others []*begun // the other attempts, if this is the first of several

	// The mutex of the owner guards these.
	background bool              // codex-wait has the result
	callerGone bool              // the call that waited for the result has ended without it
	answered   bool              // a caller has the result
	follows    func() bool       // ends that the turn ends with its call, or with those in the background
	places     map[*Turns]func() // how clients leave that are asked besides the owner's
}

// all returns the turn with its other attempts.
func (b *begun) all() []*begun { return append([]*begun{b}, b.others...) }

// over reports whether the turn has ended.
func (b *begun) over() bool { return Over(b.Done()) }

// inBackground reports whether the turn runs in the background, or has.
func (b *begun) inBackground() bool {
	b.owner.mu.Lock()
	defer b.owner.mu.Unlock()
	return b.background
}

// isOf reports whether the turn is one of the thread with an id.
func (b *begun) isOf(id string) bool { return thread.CanonicalID(b.ThreadID()) == id }

// Share returns the turns of another client, until [Turns.Leave]. Those in the background end with ctx. Each of
// the two finds the turns of the other by the ids of their threads. Apart clients do not wait for those of the other.
func (ts *Turns) Share(ctx context.Context, apart bool) *Turns {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.clients++
	running := ts.running
	if apart {
		running = &sync.WaitGroup{}
	}
	return &Turns{ts.common, ctx, running, false}
}

// Leave reports that a client of [Turns.Share] has gone and its turns have ended, and returns whether it was the last one.
func (ts *Turns) Leave() (last bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.clients--
	return ts.clients == 0
}

// Wait waits for the turns of the client, and of those that share them and are not apart. They end by themselves, or with
// their context.
func (ts *Turns) Wait() { ts.running.Wait() }

// Working says, for a person, which turns of the clients are running or queued: the thread, the folder, and what
// the turn does. The oldest one is the first.
func (ts *Turns) Working() (all []string) {
	for _, t := range ts.all(func(t *begun) bool { return !t.over() && t.thread != nil }) {
		cwd := plain.Short(t.thread.Info().Cwd, plain.MaxPath)
		all = append(all, fmt.Sprintf("%s in %s: %s", t.ThreadID(), cwd, t.State().Line()))
	}
	return all
}

// of returns the first turn of a thread whose result no caller has. If there is none, it
// returns the last turn of the thread, or nil.
func (ts *Turns) of(id string) (t *begun) {
	read := true
	ts.all(func(other *begun) bool {
		if read && other.isOf(id) {
			t, read = other, other.answered
		}
		return false
	})
	return t
}

// all returns the turns that are wanted, or nil.
func (ts *Turns) all(wanted func(*begun) bool) []*begun {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.which(wanted)
}

// which is all under the mutex.
func (ts *Turns) which(wanted func(*begun) bool) (turns []*begun) {
	for _, t := range ts.list {
		if wanted(t) {
			turns = append(turns, t)
		}
	}
	return turns
}

// unread returns the turns of the client that no call waits for and whose result no caller has, one for each
// thread.
func (ts *Turns) unread() []*begun {
	threads := map[string]bool{}
	return ts.all(func(t *begun) bool {
		left := t.background || t.callerGone && t.over()
		if t.owner != ts || t.answered || !left || threads[t.ThreadID()] {
			return false
		}
		threads[t.ThreadID()] = true
		return true
	})
}

// Stays reports whether turns in the background outlive their client.
func (ts *Turns) Stays() bool { return ts.keeper.Load() != nil }

// add adds a turn. It returns false if too many run in the background.
func (ts *Turns) add(t *begun) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t.background && ts.full() {
		return false
	}
	ts.list = append(ts.list, t)
	return true
}

// full reports whether no more turns may run in the background. ts.mu is held.
func (ts *Turns) full() bool {
	return len(ts.which(func(t *begun) bool { return t.owner == ts && t.background && !t.over() })) >= maxRunning
}

// end ends a turn that has its result, and keeps it. It removes the oldest ones if there are too many, and those of the
// same thread whose results callers have.
func (ts *Turns) end(t *begun) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, leave := range t.places {
		leave()
	}
	t.follows()
	t.End()
	id := thread.CanonicalID(t.ThreadID())
	all, answered := 0, 0
	slices.Reverse(ts.list)
	ts.list = slices.DeleteFunc(ts.list, func(other *begun) bool {
		if other.owner != t.owner || !other.over() {
			return false
		}
		all++
		if other.background || !other.answered && other != t {
			return all > maxEnded
		}
		answered++ // t is about to be
		return all > maxEnded || other != t && (answered > maxAnswered || other.isOf(id))
	})
	slices.Reverse(ts.list)
}

// place returns the client of the call as a place for questions, or nil if it cannot be asked.
func (c *Call) place() *approve.Place {
	if ask := c.Awaited.Ask; ask != nil && ask.Can() {
		return ask
	}
	return nil
}

// attach makes the client a place for the questions of a turn: until leave is called, or, if it is
// asked without a call, until the turn that another client began ends.
func (c *Call) attach(t *begun) (leave func()) {
	place := c.place()
	if place == nil || c.Background.Ask != nil && t.owner == c.Turns {
		return func() {}
	}
	only := *place
	only.Ask = func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
		if !t.IsOpen(r) { // another turn of the thread may belong to another client
			return r.Question.ReadError(elicit.ErrUnsupported, nil), nil
		}
		return place.Ask(ctx, r)
	}
	if c.Background.Ask == nil {
		return t.attach(&only)
	}
	t.owner.mu.Lock()
	defer t.owner.mu.Unlock()
	if t.places[c.Turns] == nil && !t.over() {
		if t.places == nil {
			t.places = map[*Turns]func(){}
		}
		t.places[c.Turns] = t.attach(&only)
	}
	return func() {}
}

// attach makes a place one for the questions of the turn and its other attempts, until leave is called.
func (b *begun) attach(place *approve.Place) (leave func()) {
	var leaves []func()
	for _, attempt := range b.all() {
		if attempt.thread != nil { // else it could not go on after a kill
			leaves = append(leaves, attempt.thread.Attach(place))
		}
	}
	return func() {
		for _, leave := range leaves {
			leave()
		}
	}
}

// open returns the open thread with an id that the client holds, or that has a turn of a client
// that it shares its turns with. It returns nil if there is none.
func (c *Call) open(id string) *thread.Thread {
	if t := c.Threads.Find(id); t != nil {
		return t
	}
	if t := c.Turns.of(id); t != nil && c.Turns.Stays() {
		return c.Threads.Hold(id)
	}
	return nil
}
