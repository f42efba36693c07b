package changes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Options configure how a turn finds what it changes. The zero value takes the changes from events.
type Options struct {
	// Scratch says where git works for the snapshot. Untrusted programs, such as the
	// turn's commands, must not be able to write there. Without a folder there is no
	// snapshot.
	Scratch git.Scratch
	// Wait makes [Look] wait for the snapshot. Engines that do not wait for [Before.Ready] need
	// it: each that [engine.Traits].Streams.
	Wait bool
	// Announced begins the snapshot with the first event that begins a change, for engines with
	// [engine.Traits].Announces. A turn without such an event has no snapshot.
	Announced bool
	// Changes say how the folder is read.
	Changes setting.Changes
	// Looks limits how many folders are read at a time, since each takes file
	// descriptors: its capacity is the limit. A turn waits for a place within its own
	// time limit. Nil means no limit.
	Looks chan struct{}
	// Room is released when a turn ends because the disk is full. Nil is no room.
	Room *safefile.Reserve
	// Logger receives the reason why a snapshot failed. Default: nothing is logged.
	Logger *slog.Logger

	take func(ctx context.Context, dir string, o *git.Options) (*git.Before, error) // for tests; default: git.Look
}

// Before is the folder of a turn as it was before the turn, or before its first change. Nil is that of a turn
// that has not begun. It is safe for concurrent use.
type Before struct {
	options Options
	dir     string
	roots   []string
	earlier []protocol.Change // of the process that ran the turn before

	ctx    context.Context // of the snapshot
	cancel context.CancelCauseFunc
	begun  sync.Once     // the snapshot, or giving it up
	taken  chan struct{} // closed when the snapshot is taken or has failed

	// Set before taken is closed.
	snapshot *git.Before
	failed   error // why there is no snapshot
}

var (
	errLate  = errors.New("the first change of the turn came before the folder had been read")
	errEnded = errors.New("the turn has ended before the folder had been read")
	errOff   = errors.New("calls.changes is false")
	errNone  = errors.New("this server has no folder for snapshots")
	errRuns  = errors.New("the turn is running, and only its patches are known")
	errWhere = errors.New("the turn has no folder")
	// errCut is why it is not known what a turn's commands changed that two processes ran.
	errCut = errors.New("the server ended during the turn, and what was there before it is not known any more")
)

// slowError means that reading a folder took too long.
type slowError struct{ limit time.Duration }

// Error implements error.
func (e slowError) Error() string {
	return fmt.Sprintf("reading the folder takes longer than %v", e.limit)
}

// reason returns why a folder could not be read, for people.
func reason(err error) string {
	var slow slowError
	if errors.As(err, &slow) {
		return slow.Error()
	}
	for _, known := range []error{errLate, errEnded} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return strings.TrimPrefix(err.Error(), "git: ")
}

// Look begins to take the snapshot of a folder, and of further ones where commands may write. It does not wait,
// except with [Options].Wait. The caller must call [Before.After].
func Look(ctx context.Context, dir string, roots []string, o Options) *Before {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.take == nil {
		o.take = git.Look
	}
	o.Changes = o.Changes.Resolved(o.Wait)
	b := &Before{options: o, dir: dir, roots: roots, taken: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	switch {
	case o.Changes.Off:
		b.never(errOff)
	case o.Scratch.Dir == "":
		b.never(errNone)
	case !filepath.IsAbs(dir):
		b.never(errWhere)
	case o.Wait:
		b.Ready(ctx)
	case !o.Announced:
		b.begun.Do(b.begin)
	}
	return b
}

// Continued is [Look] for a turn that continues one of a process that has ended, which made earlier changes.
// What was there before that is not known.
func Continued(dir string, earlier []protocol.Change) *Before {
	b := &Before{dir: dir, earlier: earlier, taken: make(chan struct{}), cancel: func(error) {}}
	b.never(errCut)
	return b
}

// begin takes the snapshot, in a goroutine that After waits for.
func (b *Before) begin() {
	go func() {
		defer close(b.taken)
		limit := b.options.Changes.Before
		limited, stop := context.WithTimeoutCause(b.ctx, limit, slowError{limit})
		defer stop()
		s, err := b.take(limited)
		if err != nil && b.ctx.Err() != nil && !errors.Is(context.Cause(b.ctx), errLate) {
			err = errEnded // whatever has ended the turn
		}
		b.snapshot, b.failed = s, err
		if err != nil {
			b.options.Logger.Info("no snapshot: the changes of the turn are those of its patches", "folder", b.dir, "error", err)
		}
	}()
}

// take waits for a place and takes the snapshot.
func (b *Before) take(ctx context.Context) (*git.Before, error) {
	leave, err := b.place(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	o := b.options
	return o.take(ctx, b.dir, &git.Options{Scratch: o.Scratch, Roots: b.roots, Files: o.Changes.Files})
}

// place waits for a place in [Options].Looks.
func (b *Before) place(ctx context.Context) (leave func(), err error) {
	looks := b.options.Looks
	if looks == nil {
		return func() {}, nil
	}
	select {
	case looks <- struct{}{}:
		return func() { <-looks }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// never gives up a snapshot that has not begun.
func (b *Before) never(why error) {
	b.begun.Do(func() {
		b.failed = why
		close(b.taken)
	})
}

// Ready is called before something begins that may change files. It waits, for a bounded time, until the
// snapshot is taken, which begins now if it has not begun.
func (b *Before) Ready(ctx context.Context) {
	if b == nil {
		return
	}
	b.begun.Do(b.begin)
	select {
	case <-b.taken:
	case <-ctx.Done():
	}
}

// Acting is called when something has begun that may change files. It gives up a snapshot that is not taken yet.
func (b *Before) Acting() {
	if b == nil {
		return
	}
	select {
	case <-b.taken:
	default:
		b.cancel(errLate)
		b.never(errLate)
	}
}
