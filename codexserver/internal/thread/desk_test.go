package thread_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestDeskSeesAndStopsConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan struct{})
		e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
			host.Emit(protocol.AgentMessage{Message: "hm"})
			close(began)
			<-ctx.Done()
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
		})
		d := &servertest.Desk{Answer: servertest.Never}
		c := servertest.Connect(t, codexserver.New(e, &codexserver.Options{Desk: d}), nil)
		go func() {
			<-began
			stop := d.Threads()[0].Stop
			stop()
			stop() // twice does no harm
		}()
		got, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": "the task"})
		must.OK(t, err)
		if !got.IsError || got.Content != "Turn aborted: a person pressed Stop on the approvals page" {
			t.Errorf("result %+v", got)
		}
		d.Threads()[0].Stop() // nothing runs
		c.Close()
		synctest.Wait()
		want := []string{"session_configured", "user_message the task", "task_started", "agent_message", "turn_aborted", "shutdown_complete"}
		must.Equal(t, "the desk saw", want, d.Seen())
	})
}

// TestDeskStopsByAnAnswer ends a turn by the answer to a question, which a person gave on the page.
func TestDeskStopsByAnAnswer(t *testing.T) {
	d := &servertest.Desk{Answer: servertest.Say(`{"action":"accept","content":{"decision":"abort"}}`)}
	c := servertest.Connect(t, codexserver.New(&servertest.Engine{}, &codexserver.Options{Home: t.TempDir(), Desk: d}), nil)
	got, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": "touch say:done"})
	must.OK(t, err)
	if !got.IsError || got.Content != "Turn aborted: a person pressed Stop on the approvals page" {
		t.Errorf("result %+v", got)
	}
}

// TestDeskThatPanics checks that a panic of the desk is not an answer and ends nothing.
func TestDeskThatPanics(t *testing.T) {
	for name, tt := range map[string]struct {
		client servertest.Answer
		want   string
		told   bool
	}{
		"the client answers":         {servertest.Say(servertest.Accept), "approved", false},
		"the client cannot be asked": {nil, "denied", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := servertest.Connect(t, codexserver.New(engine.TurnFunc(servertest.AskExec), &codexserver.Options{Desk: fragile{}}), tt.client)
				for range 2 {
					got, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": "p"})
					if err != nil || got.Texts[0] != tt.want {
						t.Fatalf("%q, %v", got.Texts, err)
					}
					if told := strings.Contains(strings.Join(got.Texts, " "), "The desk could not show the question"); told != tt.told {
						t.Errorf("the caller was told %q", got.Texts)
					}
				}
			})
		})
	}
}

type fragile struct{}

func (fragile) Name() approval.Decider { return "desk" }

func (fragile) Event(approval.Thread, protocol.EventMsg) { panic("event") }

func (fragile) Ask(context.Context, *approval.Request) (json.RawMessage, error) {
	panic("ask")
}

func (fragile) Decided(*approval.Request, approval.Decision) { panic("decided") }

// TestThreadsOfServers checks that a desk can distinguish threads of two servers.
func TestThreadsOfServers(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		d := &servertest.Desk{}
		s := thread.NewTable(&memory{}, &approve.Options{Desk: d}).Share("")
		for range 2 {
			must.OK(t, say(t, start(t, s), "x"))
		}
		all := d.Threads()
		for _, th := range all {
			if th.Server == "" || th.Server != all[0].Server {
				t.Errorf("one server is %q and %q", th.Server, all[0].Server)
			}
		}
		seen[all[0].Server] = true
	}
	if len(seen) != 2 {
		t.Errorf("two servers are %v", seen)
	}
}
