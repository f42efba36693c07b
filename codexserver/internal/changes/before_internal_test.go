package changes

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// ended is a turn that ran a command, by its events.
func ended() Did { return Did{Begun: true, Acted: true, Ran: true, Commands: true} }

// TestSlowSnapshot checks that a slow snapshot delays a turn by no more than the time
// limit.
func TestSlowSnapshot(t *testing.T) {
	for _, tt := range []struct {
		wait          bool
		begins, ready time.Duration // how long Look and then Ready take
	}{
		{false, 0, 5 * time.Second},
		{true, 2 * time.Second, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			take := func(ctx context.Context, _ string, _ *git.Options) (*git.Before, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			begin := time.Now()
			b := Look(t.Context(), "/", nil, Options{Scratch: git.Scratch{Dir: "/scratch"}, Wait: tt.wait, take: take})
			if took := time.Since(begin); took != tt.begins {
				t.Errorf("wait %t: Look took %v", tt.wait, took)
			}
			b.Ready(t.Context())
			if took := time.Since(begin); took != tt.begins+tt.ready {
				t.Errorf("wait %t: Ready took until %v", tt.wait, took)
			}
			b.Acting()
			if got := b.After(ended).From; got != protocol.ChangesFromEvents {
				t.Errorf("wait %t: changes from %q", tt.wait, got)
			}
		})
	}
}

// taking returns a folder whose snapshot is being taken until done is closed or it is given up.
func taking(t *testing.T) (b *Before, done chan struct{}) {
	done = make(chan struct{})
	b = Look(t.Context(), "/", nil, Options{Scratch: git.Scratch{Dir: "/scratch"}, take: func(ctx context.Context, _ string, _ *git.Options) (*git.Before, error) {
		select {
		case <-done:
			return nil, errors.New("no snapshot")
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}})
	return b, done
}

// TestReadyWaits checks that what begins a change waits for the snapshot.
func TestReadyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, done := taking(t)
		time.AfterFunc(time.Second, func() { close(done) })
		begin := time.Now()
		ended, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		b.Ready(ended)
		if took := time.Since(begin); took != time.Millisecond {
			t.Errorf("waited %v for a turn that has ended", took)
		}
		b.Ready(t.Context())
		if took := time.Since(begin); took != time.Second {
			t.Errorf("waited %v for the snapshot", took)
		}
		b.Ready(t.Context())
		(*Before)(nil).Ready(t.Context())
	})
}

// TestLateSnapshot checks that a snapshot is given up if a change begins before it is
// taken.
func TestLateSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := taking(t)
		synctest.Wait()
		b.Acting()
		if <-b.taken; !errors.Is(b.failed, errLate) {
			t.Errorf("it has failed with %v", b.failed)
		}
		b, done := taking(t)
		close(done)
		<-b.taken
		b.Acting()
		if b.ctx.Err() != nil {
			t.Errorf("given up after the snapshot: %v", context.Cause(b.ctx))
		}
	})
}

// TestSnapshotsAreBounded checks that a snapshot waits for a free place, and is given up when
// its turn ends.
func TestSnapshotsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := make(chan struct{}, 1)
		dir := t.TempDir()
		looking, release := make(chan struct{}, 2), make(chan struct{})
		begin := func() *Before {
			take := func(ctx context.Context, _ string, _ *git.Options) (*git.Before, error) {
				looking <- struct{}{}
				select {
				case <-release:
				case <-ctx.Done():
				}
				return nil, errors.New("no snapshot")
			}
			b := Look(t.Context(), dir, nil, Options{Scratch: git.Scratch{Dir: dir}, Looks: looks, Logger: slog.New(slog.DiscardHandler), take: take})
			synctest.Wait()
			return b
		}
		first, second, third := begin(), begin(), begin()
		if n := len(looking); n != 1 {
			t.Errorf("%d snapshots at a time", n)
		}
		third.Acting()
		<-third.taken // it does not wait for the others
		close(release)
		<-first.taken
		<-second.taken
		if len(looking) != 2 || len(looks) != 0 {
			t.Errorf("%d snapshots, %d places taken", len(looking), len(looks))
		}
	})
}

// TestAnnounced checks that the snapshot of an engine that announces changes is taken before the
// first of them, once, and not in a turn without one.
func TestAnnounced(t *testing.T) {
	for _, tt := range []struct {
		name        string
		ready       int // announced changes
		acts        bool
		takes, gaps int
	}{
		{"an answer", 0, false, 0, 0},
		{"a command", 2, true, 1, 1},
		{"a tool that was not announced", 0, true, 0, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			takes := 0
			b := Look(t.Context(), "/", nil, Options{Scratch: git.Scratch{Dir: "/scratch"}, Announced: true, take: func(context.Context, string, *git.Options) (*git.Before, error) {
				takes++
				return nil, errors.New("no snapshot")
			}})
			synctest.Wait()
			for range tt.ready {
				b.Ready(t.Context())
			}
			if tt.acts {
				b.Acting()
			}
			got := b.After(func() Did { return Did{Begun: true, Acted: tt.acts} })
			if takes != tt.takes || got.From != protocol.ChangesFromEvents || len(got.Unknown) != tt.gaps {
				t.Errorf("%s: %d snapshots, changes from %q, unknown %v", tt.name, takes, got.From, got.Unknown)
			}
		})
	}
}
