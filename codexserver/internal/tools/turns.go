package tools

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/elicit"
)

const (
	// maxRunning is how many turns of a client may run in the background at a time.
	maxRunning = 1024
	// maxEnded is how many turns of a client are kept after their end, and maxAnswered how many of them whose
	// calls were answered: a host that gave up a call without cancelling it did not get the answer.
	maxEnded    = 256
	maxAnswered = 16
)

// Turns has the turns that tools run for one client, and finds those of the clients that it shares
// them with. It is safe for concurrent use.
type Turns struct {
	*common
	ctx context.Context // of the turns in the background
	own sync.WaitGroup  // of this client

	shared bool // by clients that are one to this server, as all of a user over HTTP without a session are
}

// common has the turns of the clients that share them.
type common struct {
	keeper  atomic.Pointer[thread.Share] // holds the threads of turns in the background; nil leaves that to their clients
	running sync.WaitGroup

	mu      sync.Mutex // also guards who gets the results of the turns
	list    []*Turn    // in order of creation
	clients int        // that share them, see [Turns.Share]
}

// NewTurns returns the turns of a client. Those in the background end with ctx.
func NewTurns(ctx context.Context) *Turns { return &Turns{common: &common{}, ctx: ctx} }

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

// Share returns the turns of another client, until [Turns.Leave]. Those in the background end with ctx. Each of
// the two finds the turns of the other by the ids of their threads.
func (ts *Turns) Share(ctx context.Context) *Turns {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.clients++
	return &Turns{common: ts.common, ctx: ctx}
}

// Leave reports that a client of [Turns.Share] has gone and its turns have ended, and returns whether it was the last one.
func (ts *Turns) Leave() (last bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.clients--
	return ts.clients == 0
}

// Wait waits for the turns of the client. They end by themselves, or with their context.
func (ts *Turns) Wait() { ts.own.Wait() }

// WaitForAll is Wait for all clients that share their turns.
func (ts *Turns) WaitForAll() { ts.running.Wait() }

// begin runs f in a goroutine of the server.
func (ts *Turns) begin(f func()) {
	ts.own.Add(1)
	ts.running.Go(func() {
		defer ts.own.Done()
		f()
	})
}

// Busy reports whether a turn of the client is running or queued.
func (ts *Turns) Busy() bool {
	return ts.all(func(t *Turn) bool { return t.owner == ts && !t.over() }) != nil
}

// Working says, for a person, which turns of the clients are running or queued: the thread, the folder, and what
// the turn does. The oldest one is the first.
func (ts *Turns) Working() (all []string) {
	for _, t := range ts.all(func(t *Turn) bool { return !t.over() }) {
		all = append(all, fmt.Sprintf("%s in %s: %s", t.ThreadID(), show.Path(t.thread.Info().Cwd), t.State().Words()))
	}
	return all
}

// of returns the first turn of a thread whose result no caller has. If there is none, it
// returns the last turn of the thread, or nil.
func (ts *Turns) of(id string) (t *Turn) {
	read := true
	ts.all(func(other *Turn) bool {
		if read && other.isOf(id) {
			t, read = other, other.answered
		}
		return false
	})
	return t
}

// all returns the turns for which is returns true, or nil.
func (ts *Turns) all(is func(*Turn) bool) []*Turn {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.which(is)
}

// which is all under the mutex.
func (ts *Turns) which(is func(*Turn) bool) (which []*Turn) {
	for _, t := range ts.list {
		if is(t) {
			which = append(which, t)
		}
	}
	return which
}

// unread returns the turns of the client that no call waits for and whose result no caller has, one for each
// thread.
func (ts *Turns) unread() []*Turn {
	threads := map[string]bool{}
	return ts.all(func(t *Turn) bool {
		is := t.owner == ts && !t.answered && (t.background || t.over()) && !threads[t.ThreadID()]
		threads[t.ThreadID()] = threads[t.ThreadID()] || is
		return is
	})
}

// keep keeps the thread of a turn in the background open, also without its client.
func (ts *Turns) keep(t *Turn) {
	if keeper := ts.keeper.Load(); keeper != nil {
		keeper.Hold(t.ThreadID())
	}
}

// Stays reports whether turns in the background outlive their client.
func (ts *Turns) Stays() bool { return ts.keeper.Load() != nil }

// add adds a turn. It returns false if too many run in the background.
func (ts *Turns) add(t *Turn) bool {
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
	return len(ts.which(func(t *Turn) bool { return t.owner == ts && t.background && !t.over() })) >= maxRunning
}

// ended keeps a turn that has ended. It removes the oldest ones if there are too many, and those of
// the same thread that were answered. Lost is true if the caller gave up before. ts.mu is held.
func (ts *Turns) ended(t *Turn, lost bool) {
	id := thread.CanonicalID(t.ThreadID())
	t.answered = t.answered || !t.background && !lost
	all, answered := 0, 0
	slices.Reverse(ts.list)
	ts.list = slices.DeleteFunc(ts.list, func(other *Turn) bool {
		if other.owner != t.owner || !other.over() {
			return false
		}
		all++
		if other.background || !other.answered {
			return all > maxEnded
		}
		answered++
		return all > maxEnded || answered > maxAnswered || other != t && other.isOf(id)
	})
	slices.Reverse(ts.list)
}

// AnsweredLate records that an answer to a question came after its limit. The result of its turn says so, or, if
// that is known already, codex-wait does. Unsure is true if it may be another question of the turn.
func (ts *Turns) AnsweredLate(r *approval.Request, unsure bool) {
	about := turn.Subject(r)
	if unsure {
		about = "a request"
	}
	if t := ts.of(thread.CanonicalID(r.Thread.ID)); t != nil {
		t.log.Remark("An answer about " + about + " came after its limit, and changed nothing.")
	}
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
func (c *Call) attach(t *Turn) (leave func()) {
	place := c.place()
	if place == nil || c.Background.Ask != nil && t.owner == c.Turns {
		return func() {}
	}
	only := *place
	only.Ask = func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
		if !t.log.Asks(r) { // another turn of the thread may belong to another client
			return r.Question.ReadError(elicit.ErrUnsupported, nil), nil
		}
		return place.Ask(ctx, r)
	}
	if c.Background.Ask == nil {
		return t.thread.Attach(&only)
	}
	t.owner.mu.Lock()
	defer t.owner.mu.Unlock()
	if t.places[c.Turns] == nil && !t.over() {
		if t.places == nil {
			t.places = map[*Turns]func(){}
		}
		t.places[c.Turns] = t.thread.Attach(&only)
	}
	return func() {}
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

// limit has an element for each turn of the server that runs or is queued. Nil has no limit.
type limit chan struct{}

// enter counts a new turn. The caller must call leave when it has ended. enter fails if
// there are as many as there may be.
func (l limit) enter() (leave func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	select {
	case l <- struct{}{}:
		return sync.OnceFunc(func() { <-l }), nil
	default:
		return nil, fmt.Errorf("%d turns are under way, and no more may be (limits.turns): wait for the end of one, or stop one with codex-interrupt", cap(l))
	}
}
