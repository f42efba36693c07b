package turnlog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// tree is the folder of the turn, before and after it.
type tree struct {
	options Options
	take    func(ctx context.Context, dir string, o *git.Options) (*git.Before, error)

	look   atomic.Pointer[look] // nil without one
	failed error                // why there is none

	// The mutex of the turn guards these.
	earlier []protocol.Change // of the process that ran the turn before
	changed *changes          // at the end of the turn
}

// look is how the folder was before the turn, or before its first change.
type look struct {
	read   func() // begins to take the snapshot
	begun  sync.Once
	cancel context.CancelCauseFunc
	taken  chan struct{} // closed when the snapshot is taken or has failed

	// Set before taken is closed.
	snapshot *git.Before
	failed   error // why there is no snapshot
}

var (
	errLate  = errors.New("the first change of the turn came before the folder had been read")
	errEnded = errors.New("the turn has ended before the folder had been read")
	errOff   = errors.New("changes.track is off")
	errNone  = errors.New("this server has no folder for snapshots")
	errRuns  = errors.New("the turn is running, and only its patches are known")
	errWhere = errors.New("the turn has no folder")
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
	text := err.Error()
	for _, prefix := range []string{"git: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

// begin begins to take the snapshot of a folder, and of further ones.
func (t *tree) begin(ctx context.Context, dir string, roots []string) {
	switch {
	case t.failed != nil: // the turn continues
	case t.options.Changes.Off:
		t.failed = errOff
	case t.options.Scratch.Dir == "":
		t.failed = errNone
	case !filepath.IsAbs(dir):
		t.failed = errWhere
	}
	if t.failed != nil {
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l := &look{cancel: cancel, taken: make(chan struct{})}
	limit := t.options.Changes.Before
	l.read = func() {
		go func() { // end waits for it
			defer close(l.taken)
			limited, stop := context.WithTimeoutCause(ctx, limit, slowError{limit})
			defer stop()
			s, err := t.snap(limited, dir, roots)
			if err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), errLate) {
				err = errEnded // whatever has ended the turn
			}
			l.snapshot, l.failed = s, err
			if err != nil {
				t.options.Logger.Info("no snapshot: the changes of the turn are those of its patches", "folder", dir, "error", err)
			}
		}()
	}
	t.look.Store(l)
	if t.options.Announced {
		return
	}
	l.begun.Do(l.read)
	if !t.options.Wait {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-l.taken:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// snap waits for a place and takes the snapshot.
func (t *tree) snap(ctx context.Context, dir string, roots []string) (*git.Before, error) {
	leave, err := t.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return t.take(ctx, dir, &git.Options{Scratch: t.options.Scratch, Roots: roots, Files: t.options.Changes.Files})
}

// turn waits for a place in [Options].Looks.
func (t *tree) turn(ctx context.Context) (leave func(), err error) {
	if t.options.Looks == nil {
		return func() {}, nil
	}
	select {
	case t.options.Looks <- struct{}{}:
		return func() { <-t.options.Looks }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// never gives up a snapshot that has not begun.
func (l *look) never(why error) {
	l.begun.Do(func() {
		l.failed = why
		close(l.taken)
	})
}

// ready waits until the snapshot is taken, which begins now if it has not begun.
func (t *tree) ready(ctx context.Context) {
	l := t.look.Load()
	if l == nil {
		return
	}
	l.begun.Do(l.read)
	select {
	case <-l.taken:
	case <-ctx.Done():
	}
}

// acting gives up a snapshot that is not taken yet, since the folder may have changed.
func (t *tree) acting() {
	l := t.look.Load()
	if l == nil {
		return
	}
	select {
	case <-l.taken:
	default:
		l.cancel(errLate)
		l.never(errLate)
	}
}

// maxDiff bounds the diff of a turn, in bytes.
const maxDiff = 4 << 20

// outcome is what a turn changed, as the folder shows it.
type outcome struct {
	changes []git.Change
	gaps    []git.Gap
	diff    string
	left    []git.Omission // changes that are not in the diff
}

// end returns what has changed in the folder. The error is why that is not known.
func (t *tree) end() (f outcome, err error) {
	l := t.look.Load()
	if l == nil {
		if t.failed == nil { // it never began
			return f, errWhere
		}
		return f, t.failed
	}
	l.cancel(errEnded)
	l.never(errEnded)
	<-l.taken
	s := l.snapshot
	if s == nil {
		return f, l.failed
	}
	limit := t.options.Changes.After
	ctx, stop := context.WithTimeoutCause(context.Background(), limit, slowError{limit})
	defer stop()
	leave, err := t.turn(ctx)
	if err == nil {
		defer leave()
		f.changes, err = s.Compare(ctx)
	}
	if err != nil {
		t.options.Logger.Info("no look after the turn: its changes are those of its patches", "folder", s.Root(), "error", err)
	} else {
		f.gaps = s.Gaps()
		var trouble error
		if f.diff, f.left, trouble = s.Diff(ctx, maxDiff); trouble != nil {
			t.options.Logger.Info("no diff of the turn", "folder", s.Root(), "error", trouble)
			f.diff, f.left = "", nil
			for _, c := range f.changes {
				f.left = append(f.left, git.Omission{Change: c, Why: "git could not make the diff"})
			}
		}
	}
	if err := s.Remove(); err != nil {
		t.options.Logger.Warn("snapshot not removed", "error", err)
	}
	return f, err
}

// covers reports whether the snapshot covers the file at an absolute path.
func (t *tree) covers(file string) bool { return t.look.Load().snapshot.Covers(file) }

// root returns the folder of the snapshot.
func (t *tree) root() string { return t.look.Load().snapshot.Root() }
