package report

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/gitinfo"
)

// Time limits for reading a folder.
const (
	maxTake    = 5 * time.Second  // during the model's first request
	maxWait    = 2 * time.Second  // before the engine begins the turn, see [Options].Wait
	maxCompare = 30 * time.Second // after the turn; only very many changes take seconds
)

// tree is the folder of the turn, before and after it.
type tree struct {
	options Options
	take    func(ctx context.Context, dir string, scratch git.Scratch) (*gitinfo.Snapshot, error)

	mu       sync.Mutex
	cancel   context.CancelCauseFunc
	taken    chan struct{} // closed when the snapshot is taken or has failed; nil without one
	snapshot *gitinfo.Snapshot
}

var (
	errSlow  = errors.New("it takes too long")
	errLate  = errors.New("the turn's first change came before the snapshot was taken")
	errEnded = errors.New("the turn has ended")
)

// begin begins to take the snapshot.
func (t *tree) begin(ctx context.Context, dir string) {
	if t.options.Scratch.Dir == "" || !filepath.IsAbs(dir) {
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	taken := make(chan struct{})
	t.mu.Lock()
	t.cancel, t.taken = cancel, taken
	t.mu.Unlock()
	go func() { // end waits for it
		defer close(taken)
		ctx, stop := context.WithTimeoutCause(ctx, maxTake, errSlow)
		defer stop()
		s, err := t.look(ctx, dir)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.snapshot = s
		if err != nil {
			t.options.Logger.Info("no snapshot: the changes of the turn are those of its patches", "folder", dir, "error", err)
		}
	}()
	if !t.options.Wait {
		return
	}
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case <-taken:
	case <-timer.C:
		cancel(errSlow)
	case <-ctx.Done():
	}
}

// look waits for a place and takes the snapshot.
func (t *tree) look(ctx context.Context, dir string) (*gitinfo.Snapshot, error) {
	leave, err := t.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return t.take(ctx, dir, t.options.Scratch)
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

// ready waits until the snapshot is taken.
func (t *tree) ready(ctx context.Context) {
	t.mu.Lock()
	taken := t.taken
	t.mu.Unlock()
	if taken == nil {
		return
	}
	select {
	case <-taken:
	case <-ctx.Done():
	}
}

// acting gives up a snapshot that is not taken yet, since the folder may have changed.
func (t *tree) acting() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken == nil {
		return
	}
	select {
	case <-t.taken:
	default:
		t.cancel(errLate)
	}
}

// maxDiff bounds the diff of a turn, in bytes.
const maxDiff = 4 << 20

// end returns the changes in the folder, and their diff as [gitinfo.Snapshot] makes it.
// Whole is true if no change below the folder can be missing. Ok is false without a
// snapshot.
func (t *tree) end() (changes []gitinfo.Change, diff string, whole, ok bool) {
	if t.taken == nil {
		return nil, "", false, false
	}
	t.cancel(errEnded)
	<-t.taken
	s := t.snapshot
	if s == nil {
		return nil, "", false, false
	}
	ctx, stop := context.WithTimeoutCause(context.Background(), maxCompare, errSlow)
	defer stop()
	leave, err := t.turn(ctx)
	if err == nil {
		changes, err = s.Compare(ctx)
		leave()
	}
	if err != nil {
		t.options.Logger.Info("no look after the turn: its changes are those of its patches", "folder", s.Root(), "error", err)
	}
	if err == nil {
		var trouble error
		if diff, trouble = s.Diff(ctx, maxDiff); trouble != nil {
			t.options.Logger.Info("no diff of the turn", "folder", s.Root(), "error", trouble)
			diff = "# git could not make the diff of this turn\n"
		}
	}
	if err := s.Remove(); err != nil {
		t.options.Logger.Warn("snapshot not removed", "error", err)
	}
	return changes, diff, s.Complete(), err == nil
}

// covers reports whether the snapshot covers the file at an absolute path.
func (t *tree) covers(file string) bool { return t.snapshot.Covers(file) }
