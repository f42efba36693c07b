package changes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/slots"
)

// Options configure how a turn finds what it changes. The zero value takes the changes from events.
type Options struct {
	// Scratch says where git works for the snapshot. Untrusted programs, such as the
	// turn's commands, must not be able to write there. Without a folder there is no
	// snapshot.
	Scratch git.Scratch
	// Announced takes the snapshot with the first event that begins a change, for engines with
	// [engine.Traits].Announces. A turn without such an event has no snapshot. Otherwise [Look] takes it.
	Announced bool
	// Off leaves the folder alone.
	Off bool
	// Withheld returns for a turn's folder what fails for files whose content must not be shown, nil for none. A nil function
	// withholds nothing.
	Withheld func(dir string) func(path string) error
	// Files is that of [git.Options].
	Files int
	// Before is how long reading may take before the turn's first change if that is announced, and before the turn
	// otherwise; After is how long it may take after the turn. Default: 5s or 2s, and 30s.
	Before, After time.Duration
	// Looks limits how many folders are read at a time, since each takes file
	// descriptors. A turn waits for a slot within its own time limit. Nil means no limit.
	Looks slots.Slots
	// Room is released when a turn ends because the disk is full. Nil is no room.
	Room *safefile.Reserve
	// Logger receives the reason why a snapshot failed. Default: nothing is logged.
	Logger *slog.Logger

	take func(ctx context.Context, dir string, o *git.Options) (*git.Before, error) // for tests; default: git.Look
}

// TurnRoom is how many bytes must be free on the disk of the home before a turn begins: enough for what it writes before its
// first action, and as much again to say how it ended.
const TurnRoom = 512 << 10

// Before is the folder of a turn as it was before the turn, or before its first change. Nil is that of a turn
// that has not begun. It is safe for concurrent use.
type Before struct {
	options Options
	dir     string
	roots   []string
	earlier []protocol.Change // of the process that ran the turn before

	ctx  context.Context // of the snapshot
	end  context.CancelFunc
	once sync.Once // takes the snapshot, or gives it up

	// Set by once.
	snapshot *git.Before
	failed   error // why there is no snapshot
}

var (
	errEnded = errors.New("the turn has ended before the folder had been read")
	errOff   = errors.New("calls.changes is off")
	errNone  = errors.New("this server has no folder for snapshots")
	errRuns  = errors.New("the turn is running, and only its patches are known")
	errWhere = errors.New("the turn has no folder")
	// errCut is why it is not known what a turn's commands changed that two processes ran.
	errCut = errors.New("the server ended during the turn, and what was there before it is not known any more")
)

// bounded returns a context for reading a folder, which ends after a time.
func bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("reading the folder takes longer than %v", limit))
}

// Look takes the snapshot of a folder, and of further ones where commands may write, in a bounded time, unless
// [Before.Ready] is to take it. The caller must call [Before.After].
func Look(ctx context.Context, dir string, roots []string, o Options) *Before {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.take == nil {
		o.take = git.Look
	}
	before := 2 * time.Second
	if o.Announced {
		before = 5 * time.Second
	}
	o.Before, o.After = cmp.Or(o.Before, before), cmp.Or(o.After, 30*time.Second) // only very many changes take seconds
	b := &Before{options: o, dir: dir, roots: roots}
	b.ctx, b.end = context.WithCancel(ctx)
	switch {
	case o.Off:
		b.never(errOff)
	case o.Scratch.Dir == "":
		b.never(errNone)
	case !filepath.IsAbs(dir):
		b.never(errWhere)
	case !o.Announced:
		b.Ready()
	}
	return b
}

// Continued is [Look] for a turn that continues one of a process that has ended, which made earlier changes.
// What was there before that is not known.
func Continued(dir string, earlier []protocol.Change) *Before {
	b := &Before{dir: dir, earlier: earlier, end: func() {}}
	b.never(errCut)
	return b
}

// withheld asks what is withheld when a file is about to be shown, since most turns show none.
func (b *Before) withheld() func(path string) error {
	if b.options.Withheld == nil {
		return nil
	}
	check := sync.OnceValue(func() func(path string) error { return b.options.Withheld(b.dir) })
	return func(path string) error {
		if check := check(); check != nil {
			return check(path)
		}
		return nil
	}
}

// Drop gives the folder up, in place of [Before.After].
func (b *Before) Drop() {
	if b == nil {
		return
	}
	b.end()
	b.never(errEnded)
	b.remove()
}

// remove removes the snapshot.
func (b *Before) remove() {
	if b.snapshot == nil {
		return
	}
	if err := b.snapshot.Remove(); err != nil {
		b.options.Logger.Warn("snapshot not removed", "error", err)
	}
}

// never gives up a snapshot that has not begun.
func (b *Before) never(why error) { b.once.Do(func() { b.failed = why }) }

// Ready is called before something begins that may change files. It takes the snapshot if there is none yet, for a
// bounded time that ends with the turn.
func (b *Before) Ready() {
	if b != nil {
		b.once.Do(b.look)
	}
}

func (b *Before) look() {
	o := &b.options
	ctx, stop := bounded(b.ctx, o.Before)
	defer stop()
	leave, err := o.Looks.Take(ctx)
	if err == nil {
		defer leave()
		b.snapshot, err = o.take(ctx, b.dir,
			&git.Options{Scratch: o.Scratch, Roots: b.roots, Files: o.Files, Withheld: b.withheld()})
	}
	if err != nil && ctx.Err() != nil {
		if err = context.Cause(ctx); b.ctx.Err() != nil {
			err = errEnded // whatever has ended the turn
		}
	}
	if b.failed = err; err != nil {
		o.Logger.Info("no snapshot: the changes of the turn are those of its patches", "folder", b.dir, "error", err)
	}
}
