package codexserver_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// way is a way to serve a client.
type way func(ctx context.Context, t jsonrpc.Transport) error

func (w way) Serve(ctx context.Context, t jsonrpc.Transport) error { return w(ctx, t) }

// guest is the way of one of several programs.
func guest(s *codexserver.Server, _ *codexserver.Principal) way {
	return func(ctx context.Context, t jsonrpc.Transport) error {
		return s.ServeFrom(ctx, t, engine.Origin{Folder: filepath.FromSlash("/client")}, func() {})
	}
}

// counted is an engine that counts its open conversations, and remembers where the last one began.
type counted struct {
	engine.TurnFunc
	open atomic.Int32
	from atomic.Pointer[engine.Origin]
	cwd  atomic.Pointer[string]
}

func (e *counted) Start(ctx context.Context, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	c, err := e.TurnFunc.Start(ctx, cfg, host)
	e.open.Add(1)
	e.from.Store(engine.OriginOf(ctx))
	e.cwd.Store(&cfg.Cwd)
	return closing{c, e}, err
}

type closing struct {
	engine.Conversation
	e *counted
}

var errClosing = errors.New("it cannot be closed")

func (c closing) Close() error {
	c.e.open.Add(-1)
	return errors.Join(errClosing, c.Conversation.Close())
}

// TestWays checks for each way to serve a client whether it is asked, in both eras, and whether it has
// the methods of September 2025.
func TestWays(t *testing.T) {
	for _, tt := range []struct {
		name                   string
		of                     func(*codexserver.Server, *codexserver.Principal) way
		asked, methods, modern bool // modern: it has only requests of 2026-07-28
	}{
		{"the server", func(s *codexserver.Server, _ *codexserver.Principal) way { return s.Serve }, true, true, false},
		{"a principal", func(_ *codexserver.Server, p *codexserver.Principal) way { return p.Serve }, true, false, false},
		{"a principal's exchange", func(_ *codexserver.Server, p *codexserver.Principal) way { return p.Exchange }, true, false, true},
		{"one of several programs", guest, true, true, false},
		{"without questions", func(s *codexserver.Server, _ *codexserver.Principal) way { return s.Serve }, false, true, false},
		{"a principal without questions", func(_ *codexserver.Server, p *codexserver.Principal) way { return p.Serve }, false, false, false},
		{"an exchange without questions", func(_ *codexserver.Server, p *codexserver.Principal) way { return p.Exchange }, false, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := codexserver.New(engine.TurnFunc(servertest.AskExec), nil)
				p := s.Principal(t.Context(), "ann")
				w := way(func(ctx context.Context, tr jsonrpc.Transport) error {
					if !tt.asked {
						ctx = approval.WithoutQuestions(ctx)
					}
					return tt.of(s, p)(ctx, tr)
				})
				today := servertest.Dial(t, w, servertest.Say(servertest.Accept))
				answer := today.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"},"_meta":`+servertest.Capable(`"elicitation":{}`)+`}`)
				if asked := strings.Contains(answer, `"inputRequests"`); asked != tt.asked || !asked && !strings.Contains(answer, "denied") {
					t.Errorf("a call of 2026-07-28: %s", answer)
				}
				must.Equal(t, "newConversation", tt.methods, strings.Contains(today.Ask(t, "newConversation", `{}`), "conversationId"))
				today.End()
				if !tt.modern {
					c := servertest.Connect(t, w, servertest.Say(servertest.Accept))
					if got := c.CallTool(t, "codex", `{"prompt":"p"}`); strings.Contains(got, "approved") != tt.asked {
						t.Errorf("a call with a handshake: %s", got)
					}
					c.End()
				}
				must.Check(t, p.Close())
			})
		})
	}
}

// TestPrincipalsAreApart checks that a principal does not reach the open thread of another, is busy
// with the work of its clients, and that its end ends their work and closes their threads.
func TestPrincipalsAreApart(t *testing.T) {
	for _, work := range []string{"in a call", "in a call of 2026-07-28", "in the background", "between calls"} {
		t.Run(work, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &counted{TurnFunc: servertest.Script()}
				s := codexserver.New(e, nil)
				ann, bob := s.Principal(t.Context(), "ann"), s.Principal(t.Context(), "bob")
				first, second := servertest.Connect(t, ann, nil), servertest.Connect(t, bob, nil)
				exchange := servertest.Dial(t, way(ann.Exchange), nil)
				begun := must.Get(first.Tool(t.Context(), "codex", map[string]any{"prompt": "say:hello"}))(t)
				reply := `{"prompt":"say:more","threadId":"` + begun.Thread + `"}`
				if got := second.CallTool(t, "codex-reply", reply); strings.Contains(got, "more") {
					t.Errorf("bob reaches ann's thread: %s", got)
				}
				if got := first.CallTool(t, "codex-reply", reply); !strings.Contains(got, "more") {
					t.Errorf("ann does not: %s", got)
				}
				switch work {
				case "in a call":
					go first.CallTool(t, "codex", `{"prompt":"wait:1h"}`)
				case "in a call of 2026-07-28":
					go exchange.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"wait:1h"},"_meta":`+servertest.Meta+`}`)
				case "in the background":
					first.CallTool(t, "codex", `{"prompt":"wait:1h","background":true}`)
					first.Close() // the turn outlives its client, so that the principal stays busy
				}
				synctest.Wait()
				if ann.Busy() != (work != "between calls") || bob.Busy() {
					t.Errorf("ann is busy: %t, bob: %t", ann.Busy(), bob.Busy())
				}
				start := time.Now()
				first.End()
				exchange.End()
				if err := ann.Close(); (err != nil) != (work != "between calls" && work != "in a call") && !errors.Is(err, errClosing) {
					t.Errorf("close: %v", err)
				}
				if took := time.Since(start); took > time.Minute || e.open.Load() != 0 || ann.Busy() {
					t.Errorf("after %v %d conversations are open, busy: %t", took, e.open.Load(), ann.Busy())
				}
				second.End()
				must.Check(t, bob.Close())
			})
		})
	}
}

// TestGuests checks that the work of one of several programs outlives it, where it runs, and when
// the server knows that all are gone.
func TestGuests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &counted{TurnFunc: servertest.Script()}
		s := codexserver.New(e, nil)
		var left, returned atomic.Bool
		c := servertest.Connect(t, way(func(ctx context.Context, tr jsonrpc.Transport) error {
			defer returned.Store(true)
			return s.ServeFrom(ctx, tr, engine.Origin{Folder: filepath.FromSlash("/client")}, func() { left.Store(true) })
		}), nil)
		working := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			got := s.Working()
			if len(got) != want {
				t.Errorf("%s: %q, want %d turns", when, got, want)
			}
		}
		working("before", 0)
		c.CallTool(t, "codex", `{"prompt":"wait:1h","background":true}`)
		working("in the turn", 1)
		if from := e.from.Load(); from == nil || from.Folder != filepath.FromSlash("/client") {
			t.Errorf("it runs at %v", from)
		}
		c.Close()
		working("after the client", 1)
		if !left.Load() || returned.Load() {
			t.Errorf("left: %t, returned: %t", left.Load(), returned.Load())
		}
		<-time.After(2 * time.Hour)
		working("after the turn", 0)
		if !returned.Load() || e.open.Load() != 0 {
			t.Errorf("returned: %t, %d conversations are open", returned.Load(), e.open.Load())
		}
	})
}

// TestGuestsStay checks that the thread of a turn in the background stays open for the programs that are left,
// and is closed when the last one leaves.
func TestGuestsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &counted{TurnFunc: servertest.Script()}
		s := codexserver.New(e, nil)
		first, second := servertest.Connect(t, guest(s, nil), nil), servertest.Connect(t, guest(s, nil), nil)
		first.CallTool(t, "codex", `{"prompt":"wait:1h","background":true}`)
		<-time.After(2 * time.Hour)
		for _, tt := range []struct {
			when  string
			leave func()
			open  int
		}{{"both are there", func() {}, 1}, {"one has left", first.End, 1}, {"both have left", second.End, 0}} {
			tt.leave()
			synctest.Wait()
			if open := int(e.open.Load()); open != tt.open {
				t.Errorf("%s: %d open conversations, want %d", tt.when, open, tt.open)
			}
		}
	})
}

// TestFolder checks where a call without a folder works.
func TestFolder(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, tt := range []struct {
		o    codexserver.Options
		want string
	}{
		{codexserver.Options{Folder: b}, b},
		{codexserver.Options{Calls: codexserver.CallOptions{Folders: []string{a, b}}}, a},
		{codexserver.Options{Folder: b, Calls: codexserver.CallOptions{Folders: []string{a, b}}}, b},
	} {
		e := &counted{TurnFunc: servertest.Script()}
		servertest.Connect(t, codexserver.New(e, &tt.o), nil).CallTool(t, "codex", `{"prompt":"say:x"}`)
		if got := e.cwd.Load(); got == nil || *got != tt.want {
			t.Errorf("%+v: %v", tt.o, got)
		}
	}
}
