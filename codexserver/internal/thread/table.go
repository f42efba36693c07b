package thread

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/admit"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/internal/stack"
	"github.com/google/uuid"
)

// Table has the threads of one server by canonical id. It is safe for concurrent use.
type Table struct {
	// Observe, unless nil, returns the observer of a turn of a thread, or nil. It is set before the first thread begins.
	Observe func(thread string) TurnObserver

	engine    engine.Engine
	approvals *approve.Options
	log       *slog.Logger
	logs      string        // the folder of the threads' logs; "" keeps them in memory
	server    func() string // a unique id, made for the first thread
	reviving  slots.Slots   // one, to resume a thread from its rollout
	grants    sync.Map      // what people approved: a protocol.Access for each grant, and each pair
	field     field

	mu      sync.Mutex
	threads map[string]*Thread
}

// NewTable returns an empty table of threads that e runs. Approvals are the options for
// their questions.
func NewTable(e engine.Engine, approvals *approve.Options) *Table {
	return &Table{
		engine: e, approvals: approvals, log: cmp.Or(approvals.Logger, slog.New(slog.DiscardHandler)),
		server: sync.OnceValue(rand.Text), threads: map[string]*Thread{}, reviving: make(slots.Slots, 1),
	}
}

// KeepIn makes threads keep their logs in files in a folder instead of in memory.
// Commands must not be able to write to the folder. KeepIn must be called before the first
// thread begins.
func (t *Table) KeepIn(folder string) { t.logs = folder }

// NoteIn makes the table note the folders of running turns in a folder of all servers with the same home, in which no command can
// write. NoteIn must be called before the first thread begins.
func (t *Table) NoteIn(folder string) { t.field.dir = folder }

// Working reports whether a turn of a thread runs or is queued.
func (t *Table) Working() bool {
	t.mu.Lock()
	threads := slices.Collect(maps.Values(t.threads))
	t.mu.Unlock()
	return slices.ContainsFunc(threads, func(one *Thread) bool {
		one.mu.Lock()
		defer one.mu.Unlock()
		return len(one.queue) > 0
	})
}

// Share returns a new share of the table, which must be closed. Its threads belong to the
// principal: shares of other principals can neither find nor resume an open one.
func (t *Table) Share(principal string) *Share { return &Share{table: t, principal: principal} }

// lastLines is how many bytes of a thread's log a desk gets.
const lastLines = 6 << 10

// newThread returns a thread of a share, which its engine is to open. A hears its first events.
func (s *Share) newThread(a Attend) *Thread {
	table, traits := s.table, engine.TraitsOf(s.table.engine)
	t := &Thread{
		table: table, traits: traits, kept: transcript.New(table.logs),
		shares: map[*Share]bool{}, listeners: listeners{all: map[*Listener]bool{}, keeps: a.Keeps},
	}
	t.kept.Engine = traits.Name
	a.Submission, a.Turn, a.Comes = "", nil, false // those of a are for the first turn
	t.rest = &seat{Attend: a}
	t.about = approval.Thread{
		Server: table.server(), Principal: s.principal, Engine: traits.Name, Now: t.doing,
		Stop: func() { t.Stop(ErrStopped) }, Log: func() string { return t.kept.Last(lastLines) },
	}
	t.board = approve.New(table.approvals, t.invite)
	t.board.Asks = t.asksPerson
	return t
}

// open adds a thread that the share holds. It fails if a thread with the same id is open.
func (t *Table) open(s *Share, thread *Thread) error {
	id := CanonicalID(thread.ID())
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.closed {
		return ErrShareClosed
	}
	if t.threads[id] != nil {
		return notHere(id)
	}
	r, resumes := t.engine.(engine.Resumer)
	thread.idle = time.AfterFunc(idleLimit, func() {
		if resumes && !thread.listeners.keeps {
			t.closeIdle(thread, r)
		}
	})
	thread.shares[s], t.threads[id] = true, thread
	return nil
}

// idleLimit is how long a thread stays open that nobody uses. [Share.Revive] resumes it later.
const idleLimit = time.Hour

// closeIdle closes a thread that nobody has used for [idleLimit], if it has a file.
func (t *Table) closeIdle(th *Thread, r engine.Resumer) {
	t.reviving <- struct{}{} // nobody resumes the thread before it is closed
	defer func() { <-t.reviving }()
	_, err := r.Find(context.Background(), th.ID())
	t.mu.Lock()
	th.mu.Lock()
	used := th.idle.Stop() || len(th.queue) > 0 // the timer was set again
	closes := err == nil && !used && !th.closed
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
		th.show(protocol.ShutdownComplete{})
	}
}

// ErrShareClosed is the error of a share that was closed.
var ErrShareClosed = errors.New("the session has ended")

// Share has the threads that one connection holds open. A thread that no share holds is
// closed. A Share is safe for concurrent use.
type Share struct {
	table     *Table
	principal string
	closed    bool // guarded by table.mu
}

// Principal returns the principal of the share.
func (s *Share) Principal() string { return s.principal }

// OpenOnly reports whether the share shows no threads but open ones. The rollout of another may
// belong to another principal.
func (s *Share) OpenOnly() bool { return s.principal != "" }

// Start begins a thread for a caller. A receives its first events.
func (s *Share) Start(ctx context.Context, c admit.Caller, cfg protocol.Config, a Attend) (*Thread, error) {
	return s.begin(ctx, c, cfg, a, func(h engine.Host) (engine.Conversation, error) {
		return s.table.engine.Start(ctx, cfg, h)
	})
}

func (s *Share) begin(
	ctx context.Context, c admit.Caller, cfg protocol.Config, a Attend,
	start func(engine.Host) (engine.Conversation, error),
) (*Thread, error) {
	t := s.newThread(a)
	var err error
	if stack.Apart(func() { t.conversation, err = start(t) }); err != nil {
		t.kept.Close()
		return nil, err
	}
	if err = s.extends(ctx, t, c, &cfg); err == nil {
		err = s.table.open(s, t)
	}
	if err != nil {
		return nil, errors.Join(err, t.release())
	}
	return t, nil
}

// Revive returns the thread with an id. The share also holds it from then on. If the thread
// is not open, Revive resumes it from its rollout for a caller, with the configuration cfg.
func (s *Share) Revive(ctx context.Context, c admit.Caller, id string, cfg protocol.Config, a Attend) (*Thread, error) {
	leave, err := s.table.reviving.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if t := s.Hold(id); t != nil {
		return t, nil
	}
	if s.open(id, func(t *Thread) bool { return t.about.Principal != s.principal }) != nil {
		return nil, notHere(id)
	}
	r, ok := s.table.engine.(engine.Resumer)
	if !ok {
		return nil, fmt.Errorf("no conversation %q in this session", id)
	}
	saved, err := r.Find(ctx, id)
	if errors.Is(err, engine.ErrNotFound) {
		return nil, notHere(id)
	}
	if err != nil {
		return nil, err
	}
	cfg.Keep = s.keeps(ctx, c, id)
	return s.begin(ctx, c, cfg, a, func(h engine.Host) (engine.Conversation, error) {
		return r.Resume(ctx, saved, cfg, h)
	})
}

// notHere returns the error for a thread that does not exist for a share.
func notHere(id string) error { return fmt.Errorf("no conversation %q, open or saved here", id) }

// open returns the open thread with an id if it is what is wanted, and nil otherwise.
func (s *Share) open(id string, wanted func(*Thread) bool) *Thread {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if t := s.table.threads[CanonicalID(id)]; t != nil && wanted(t) {
		return t
	}
	return nil
}

// Hold returns the open thread with an id, or nil. The share holds it from then on.
func (s *Share) Hold(id string) *Thread {
	return s.open(id, func(t *Thread) bool {
		if s.closed || t.about.Principal != s.principal {
			return false
		}
		t.shares[s] = true
		t.idle.Reset(idleLimit)
		return true
	})
}

// Find returns the thread with an id if the share holds it, and nil otherwise.
func (s *Share) Find(id string) *Thread {
	return s.open(id, func(t *Thread) bool { return t.shares[s] })
}

// Elsewhere reports whether the thread with an id is open and the share does not hold it.
func (s *Share) Elsewhere(id string) bool {
	return s.open(id, func(t *Thread) bool { return !t.shares[s] }) != nil
}

// End interrupts the running turn of a thread and closes the thread for every share. It
// does nothing if the share does not hold the thread.
func (s *Share) End(ctx context.Context, id string) error {
	t := s.Find(id)
	if t == nil {
		return nil
	}
	s.table.mu.Lock()
	delete(s.table.threads, CanonicalID(id))
	s.table.mu.Unlock()
	if _, err := t.Interrupt(ctx); err != nil {
		return err
	}
	return t.end(ctx)
}

// Close releases every thread, and closes those that no other share holds, each after its
// last turn.
func (s *Share) Close() error {
	s.table.mu.Lock()
	s.closed = true
	var last []*Thread
	for id, t := range s.table.threads {
		if !t.shares[s] {
			continue
		}
		delete(t.shares, s)
		if len(t.shares) == 0 {
			delete(s.table.threads, id)
			last = append(last, t)
		}
	}
	s.table.mu.Unlock()
	var err error
	for _, t := range last {
		err = errors.Join(err, t.end(context.Background()))
	}
	return err
}

// CanonicalID returns a UUID in the form of threads' ids. As in Codex, clients may write it
// in upper case, in braces, without hyphens or as urn:uuid:. CanonicalID returns any other
// text unchanged.
func CanonicalID(id string) string {
	if uuid.Validate(id) != nil {
		return id
	}
	return uuid.MustParse(id).String()
}
