package tools

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
)

// sweepEvery is how often what is not needed any more is removed from the home.
const sweepEvery = time.Hour

// sweeper removes what is not needed any more from the home: private git folders of processes
// that were killed.
type sweeper struct {
	scratch git.Scratch
	log     *slog.Logger // or nil

	last atomic.Pointer[time.Time] // when it was swept, or nil
}

// begin sweeps in the background, with the turns of a call, unless it was swept lately.
func (s *sweeper) begin(ts *Turns) {
	last, now := s.last.Load(), time.Now()
	if s.scratch.Dir == "" || last != nil && now.Sub(*last) < sweepEvery || !s.last.CompareAndSwap(last, &now) {
		return
	}
	ts.begin(func() {
		if err := s.scratch.Sweep(ts.ctx); err != nil && ts.ctx.Err() == nil && s.log != nil {
			s.log.Warn("sweeping what is kept", "error", err)
		}
	})
}
