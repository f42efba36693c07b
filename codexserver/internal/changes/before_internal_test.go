package changes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// ended is a turn that ran a command, by its events.
func ended() Did {
	return Did{Begun: true, Patches: &Patches{}, Acted: true, Ran: true, Commands: true}
}

// slow is a snapshot that is taken until its context ends.
func slow(ctx context.Context, _ string, _ *git.Options) (*git.Before, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// TestSlowSnapshot checks that a slow snapshot delays a turn by no more than the time limit, once, and not after the
// turn has ended.
func TestSlowSnapshot(t *testing.T) {
	for _, tt := range []struct {
		announced     bool
		ends          time.Duration // of the turn
		begins, ready time.Duration // how long Look and then Ready take
		why           string
	}{
		{true, time.Hour, 0, 5 * time.Second, "reading the folder takes longer than 5s"},
		{true, time.Second, 0, time.Second, errEnded.Error()},
		{false, time.Hour, 2 * time.Second, 0, "reading the folder takes longer than 2s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), tt.ends)
			defer stop()
			begin := time.Now()
			b := Look(ctx, "/", nil, Options{Scratch: git.Scratch{Dir: "/scratch"}, Announced: tt.announced, take: slow})
			if took := time.Since(begin); took != tt.begins {
				t.Errorf("announced %t: Look took %v", tt.announced, took)
			}
			b.Ready()
			b.Ready()
			if took := time.Since(begin); took != tt.begins+tt.ready {
				t.Errorf("announced %t: Ready took until %v", tt.announced, took)
			}
			if got := b.After(ended()); got.From != protocol.ChangesFromEvents || len(got.Unknown) != 1 || got.Unknown[0].Why != tt.why {
				t.Errorf("announced %t: %+v", tt.announced, got)
			}
		})
	}
}

// TestSnapshotEndsWithTurn checks that the end of a turn does not wait for its snapshot.
func TestSnapshotEndsWithTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Look(t.Context(), "/", nil, Options{Scratch: git.Scratch{Dir: "/scratch"}, Announced: true, take: slow})
		go b.Ready()
		synctest.Wait()
		begin := time.Now()
		if got := b.After(ended()); time.Since(begin) > 0 || got.Unknown[0].Why != errEnded.Error() {
			t.Errorf("after %v: %+v", time.Since(begin), got)
		}
		(*Before)(nil).Ready()
	})
}

// TestSnapshotsAreBounded checks that a snapshot waits for a free place, and is given up when its turn ends.
func TestSnapshotsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, looking, release := make(chan struct{}, 1), 0, make(chan struct{})
		begin := func() (b *Before) {
			b = Look(t.Context(), "/", nil, Options{Scratch: git.Scratch{Dir: "/"}, Looks: looks, Announced: true, take: func(context.Context, string, *git.Options) (*git.Before, error) {
				looking++
				<-release
				return nil, errors.New("no snapshot")
			}})
			go b.Ready()
			synctest.Wait()
			return b
		}
		first, second, third := begin(), begin(), begin()
		if looking != 1 {
			t.Errorf("%d snapshots at a time", looking)
		}
		third.After(ended()) // it does not wait for the others
		close(release)
		first.After(ended())
		second.After(ended())
		if looking > 2 || len(looks) != 0 {
			t.Errorf("%d snapshots, %d places taken", looking, len(looks))
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
		{"an answer", 0, false, 0, 0}, {"a command", 2, true, 1, 1}, {"a tool that was not announced", 0, true, 0, 1},
	} {
		takes := 0
		b := Look(t.Context(), "/", nil, Options{Scratch: git.Scratch{Dir: "/scratch"}, Announced: true, take: func(context.Context, string, *git.Options) (*git.Before, error) {
			takes++
			return nil, errors.New("no snapshot")
		}})
		for range tt.ready {
			b.Ready()
		}
		got := b.After(Did{Begun: true, Patches: &Patches{}, Acted: tt.acts})
		if takes != tt.takes || got.From != protocol.ChangesFromEvents || len(got.Unknown) != tt.gaps {
			t.Errorf("%s: %d snapshots, changes from %q, unknown %v", tt.name, takes, got.From, got.Unknown)
		}
	}
}
