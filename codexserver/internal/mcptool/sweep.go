package mcptool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
)

// sweepEvery is how often what is not needed any more is removed from the home.
const sweepEvery = time.Hour

// sweeper removes what is not needed any more from the home: private git folders of processes
// that were killed, and worktrees that were not used for long and have no work to lose.
type sweeper struct {
	scratch   repo.Scratch
	worktrees *worktrees    // or nil
	age       time.Duration // of unused worktrees; 0 keeps them
	log       *slog.Logger  // or nil

	last atomic.Pointer[time.Time] // when it was swept, or nil
}

// begin sweeps in the background, with the jobs of a call, unless it was swept lately.
func (s *sweeper) begin(js *Jobs) {
	last, now := s.last.Load(), time.Now()
	if s.scratch.Dir == "" || last != nil && now.Sub(*last) < sweepEvery || !s.last.CompareAndSwap(last, &now) {
		return
	}
	js.begin(func() {
		if err := s.sweep(js.ctx); err != nil && js.ctx.Err() == nil && s.log != nil {
			s.log.Warn("sweeping what is kept", "error", err)
		}
	})
}

func (s *sweeper) sweep(ctx context.Context) error {
	err := s.scratch.Sweep(ctx)
	if s.worktrees != nil && s.age > 0 && s.worktrees.any() {
		err = errors.Join(err, s.worktrees.open().SweepUnused(ctx, s.age))
	}
	return err
}

// room fails if there may be no more worktrees.
func (ws *worktrees) room() error {
	if ws.most == 0 || !ws.any() {
		return nil
	}
	all, _ := ws.open().List() // what cannot be read does not count
	if len(all) < ws.most {
		return nil
	}
	return fmt.Errorf("there are %d worktrees, and no more may be (keep.max_worktrees): remove one with codex-worktree and the action discard", len(all))
}
