package thread_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestIdle closes threads that nobody has used for an hour, and resumes one.
func TestIdle(t *testing.T) {
	wait := func(d time.Duration) {
		<-time.After(d)
		synctest.Wait()
	}
	for name, tt := range map[string]struct {
		next int                                                    // engines know the files of the first hundred
		use  func(t *testing.T, s *thread.Share, th *thread.Thread) // for an hour and two minutes
		want bool                                                   // it is closed
	}{
		"unused":         {0, func(*testing.T, *thread.Share, *thread.Thread) { wait(62 * time.Minute) }, true},
		"without a file": {100, func(*testing.T, *thread.Share, *thread.Thread) { wait(62 * time.Minute) }, false},
		"of a client that cannot resume it": {0, func(_ *testing.T, _ *thread.Share, th *thread.Thread) {
			th.Stay()
			wait(62 * time.Minute)
		}, false},
		"with a turn": {0, func(t *testing.T, _ *thread.Share, th *thread.Thread) {
			wait(59 * time.Minute)
			if err := say(t, th, "hello"); err != nil {
				t.Error(err)
			}
			wait(3 * time.Minute)
		}, false},
		"asked for": {0, func(_ *testing.T, s *thread.Share, th *thread.Thread) {
			wait(59 * time.Minute)
			s.Hold(th.ID())
			wait(3 * time.Minute)
		}, false},
		"with a long turn": {0, func(t *testing.T, _ *thread.Share, th *thread.Thread) {
			ctx, cancel := context.WithTimeout(t.Context(), 61*time.Minute)
			defer cancel()
			var abort *engine.AbortError
			if err := th.Begin(thread.Attend{}, protocol.TurnInput{Items: protocol.TextInput("wait")}).Run(ctx); !errors.As(err, &abort) {
				t.Error(err)
			}
			wait(time.Minute)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{next: tt.next}
				s := newTable(m).Share("")
				th := start(t, s)
				tt.use(t, s, th)
				if closed := s.Find(th.ID()) == nil; closed != tt.want || closed != (m.ends() != "") {
					t.Errorf("it is closed: %t, the engine has closed %q", closed, m.ends())
				}
				again, err := s.Revive(t.Context(), th.ID(), thread.Attend{}, plain)
				if err != nil || (again == th) == tt.want || (m.resume == 1) != tt.want {
					t.Fatalf("revived: %v, resumed %d times", err, m.resume)
				}
				if err := say(t, again, "more"); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				wait(2 * time.Hour) // of a closed thread nothing is closed again
			})
		})
	}
}
