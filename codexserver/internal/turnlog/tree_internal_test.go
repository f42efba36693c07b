package turnlog

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

// taking returns a watch while its snapshot is being taken.
func taking(t *testing.T) (c *Turn, ctx context.Context) {
	ctx, cancel := context.WithCancelCause(t.Context())
	c = NewTurn(Options{})
	l := &look{read: func() {}, cancel: cancel, taken: make(chan struct{})}
	l.begun.Do(l.read)
	c.tree.look.Store(l)
	return c, ctx
}

// TestSlowSnapshot checks that a slow snapshot delays a turn by no more than the time
// limit.
func TestSlowSnapshot(t *testing.T) {
	for _, tt := range []struct {
		wait          bool
		begins, ready time.Duration // how long Begin and then Ready take
	}{
		{false, 0, 5 * time.Second},
		{true, 2 * time.Second, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := NewTurn(Options{Scratch: git.Scratch{Dir: "/scratch"}, Wait: tt.wait})
			c.tree.take = func(ctx context.Context, _ string, _ *git.Options) (*git.Before, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			begin := time.Now()
			c.Begin(t.Context(), protocol.SessionConfigured{Cwd: "/"}, nil)
			if took := time.Since(begin); took != tt.begins {
				t.Errorf("wait %t: Begin took %v", tt.wait, took)
			}
			c.Ready(t.Context(), protocol.ExecCommandBegin{})
			if took := time.Since(begin); took != tt.begins+tt.ready {
				t.Errorf("wait %t: Ready took until %v", tt.wait, took)
			}
			NewStore(1).New().Add(c, "", protocol.ExecCommandBegin{})
			c.End(nil)
			if got := c.So().ChangesFrom; got != protocol.ChangesFromEvents {
				t.Errorf("wait %t: changes from %q", tt.wait, got)
			}
		})
	}
}

// TestReadyWaits checks that only events that begin a change wait for the snapshot.
func TestReadyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := taking(t)
		time.AfterFunc(time.Second, func() { close(c.tree.look.Load().taken) })
		begin := time.Now()
		for _, m := range []protocol.EventMsg{nil, protocol.TaskStarted{}, protocol.AgentMessageDelta{}, protocol.ExecCommandEnd{}} {
			c.Ready(t.Context(), m)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("waited %v", took)
		}
		ended, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		c.Ready(ended, protocol.ExecCommandBegin{})
		if took := time.Since(begin); took != time.Millisecond {
			t.Errorf("waited %v for a turn that has ended", took)
		}
		c.Ready(t.Context(), protocol.ExecCommandBegin{})
		if took := time.Since(begin); took != time.Second {
			t.Errorf("waited %v for the snapshot", took)
		}
		c.Ready(t.Context(), protocol.PatchApplyBegin{})
	})
}

// TestLateSnapshot checks that a snapshot is given up if a change begins before it is
// taken.
func TestLateSnapshot(t *testing.T) {
	for _, m := range []protocol.EventMsg{protocol.ExecCommandBegin{}, protocol.PatchApplyBegin{}, protocol.MCPToolCallBegin{}} {
		c, ctx := taking(t)
		NewStore(1).New().Add(c, "", protocol.AgentMessage{})
		if ctx.Err() != nil {
			t.Errorf("given up for a message: %v", context.Cause(ctx))
		}
		NewStore(1).New().Add(c, "", m)
		if !errors.Is(context.Cause(ctx), errLate) {
			t.Errorf("%s: %v", m.EventType(), context.Cause(ctx))
		}
		c, ctx = taking(t)
		close(c.tree.look.Load().taken)
		NewStore(1).New().Add(c, "", m)
		if ctx.Err() != nil {
			t.Errorf("%s after the snapshot: %v", m.EventType(), context.Cause(ctx))
		}
	}
}

// TestSnapshotsAreBounded checks that a snapshot waits for a free place, and is given up when
// its turn ends.
func TestSnapshotsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := make(chan struct{}, 1)
		dir := t.TempDir()
		looking, release := make(chan struct{}, 2), make(chan struct{})
		begin := func() *Turn {
			c := NewTurn(Options{Scratch: git.Scratch{Dir: dir}, Looks: looks, Logger: slog.New(slog.DiscardHandler)})
			c.tree.take = func(ctx context.Context, _ string, _ *git.Options) (*git.Before, error) {
				looking <- struct{}{}
				select {
				case <-release:
				case <-ctx.Done():
				}
				return nil, errors.New("no snapshot")
			}
			c.tree.begin(t.Context(), dir, nil)
			synctest.Wait()
			return c
		}
		first, second, third := begin(), begin(), begin()
		if n := len(looking); n != 1 {
			t.Errorf("%d snapshots at a time", n)
		}
		third.tree.acting()
		<-third.tree.look.Load().taken // it does not wait for the others
		close(release)
		<-first.tree.look.Load().taken
		<-second.tree.look.Load().taken
		if len(looking) != 2 || len(looks) != 0 {
			t.Errorf("%d snapshots, %d places taken", len(looking), len(looks))
		}
	})
}

// TestAnnounced checks that the snapshot of an engine that announces changes is taken before the
// first of them, once, and not in a turn without one.
func TestAnnounced(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ready []protocol.EventMsg
		event protocol.EventMsg
		takes int
		gaps  int // of the report
	}{
		{"an answer", []protocol.EventMsg{nil, protocol.AgentMessageDelta{}}, protocol.AgentMessage{}, 0, 0},
		{"a command", []protocol.EventMsg{protocol.ExecCommandBegin{}, protocol.PatchApplyBegin{}}, protocol.ExecCommandBegin{CallID: "1"}, 1, 1},
		{"a tool that was not announced", nil, protocol.MCPToolCallBegin{CallID: "1"}, 0, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := NewTurn(Options{Scratch: git.Scratch{Dir: "/scratch"}, Announced: true})
			takes := 0
			c.tree.take = func(context.Context, string, *git.Options) (*git.Before, error) {
				takes++
				return nil, errors.New("no snapshot")
			}
			c.Begin(t.Context(), protocol.SessionConfigured{Cwd: "/"}, nil)
			synctest.Wait()
			for _, m := range tt.ready {
				c.Ready(t.Context(), m)
			}
			NewStore(1).New().Add(c, "", tt.event)
			c.End(nil)
			if got := c.So(); takes != tt.takes || got.ChangesFrom != protocol.ChangesFromEvents || len(got.Unknown) != tt.gaps {
				t.Errorf("%s: %d snapshots, changes from %q, unknown %v", tt.name, takes, got.ChangesFrom, got.Unknown)
			}
		})
	}
}
