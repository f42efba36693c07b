package codexserver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// pusher is an engine that asks whether it may push.
func pusher(ctx context.Context, host engine.Host, input []protocol.InputItem) error {
	out := host.Ask(ctx, approval.Command{CallID: "1", Command: []string{"git", "push"}, Cwd: "/work"})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	host.Emit(protocol.AgentMessage{Message: fmt.Sprintf("%s: %s %q", protocol.TextOf(input), out.Decision, out.ForModel())})
	return nil
}

// A task without MCP: its events, and a decision.
func ExampleServer_Run() {
	server := codexserver.New(engine.TurnFunc(pusher), nil)
	answer, err := server.Run(context.Background(), codexserver.Turn{
		Prompt: "publish it",
		Event:  func(m protocol.EventMsg) { fmt.Println(m.EventType()) },
		Approve: func(_ context.Context, r *approval.Request) elicit.Outcome {
			fmt.Println(r.Question.Message)
			return elicit.Outcome{Decision: elicit.Denied, Feedback: "not on a Friday"}
		},
	})
	fmt.Println(answer.Text, err)
	// Output:
	// session_configured
	// task_started
	// exec_approval_request
	// Allow Codex to run `git push` in `/work`?
	// agent_message
	// task_complete
	// publish it: denied "declined: not on a Friday" <nil>
}

func TestRunDecides(t *testing.T) {
	approve := func(out elicit.Outcome) func(context.Context, *approval.Request) elicit.Outcome {
		return func(context.Context, *approval.Request) elicit.Outcome { return out }
	}
	for _, tt := range []struct {
		name    string
		approve func(context.Context, *approval.Request) elicit.Outcome
		want    string
		by      string
	}{
		{"approved", approve(elicit.Outcome{Decision: elicit.Approved}), `p: approved ""`, "client"},
		{"nobody", nil, `p: denied "this MCP client cannot show approval requests"`, "nobody"},
		{"no decision", approve(elicit.Outcome{}), `p: denied "declined"`, "client"},
		{"no word", approve(elicit.Outcome{Decision: "yes"}), `p: denied "declined"`, "client"},
		{"panic", func(context.Context, *approval.Request) elicit.Outcome { panic("no") },
			`p: denied "this MCP client cannot show approval requests"`, "nobody"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &counted{TurnFunc: pusher}
			var record strings.Builder
			answer := must.Get(codexserver.New(e, &codexserver.Options{Record: &record}).Run(t.Context(), codexserver.Turn{Prompt: "p", Approve: tt.approve}))(t)
			if e.open.Load() != 0 || !strings.Contains(record.String(), `"by":"`+tt.by+`"`) {
				t.Errorf("%d conversations are open; the record is %s", e.open.Load(), record.String())
			}
			must.Equal(t, "result", tt.want, answer.Text)
		})
	}
}

// resuming is an engine whose conversations can be opened again.
type resuming struct{ engine.TurnFunc }

func (e resuming) Resume(ctx context.Context, _ engine.Saved, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	return e.Start(ctx, cfg, host)
}

func (resuming) Find(_ context.Context, id string) (engine.Saved, error) {
	return engine.Saved{ID: id}, nil
}

func TestRunEnds(t *testing.T) {
	fault := errors.New("a fault")
	ctx, cancel := context.WithCancel(t.Context())
	var failed *engine.TurnError
	var aborted *engine.AbortError
	for _, tt := range []struct {
		name    string
		turn    codexserver.Turn
		e       engine.TurnFunc
		want    any
		threads bool
	}{
		{"failed", codexserver.Turn{Prompt: "p"}, func(context.Context, engine.Host, []protocol.InputItem) error { return fault }, &failed, true},
		{"panicked", codexserver.Turn{Prompt: "p"}, func(context.Context, engine.Host, []protocol.InputItem) error { panic(fault) }, &failed, true},
		{"interrupted", codexserver.Turn{Prompt: "p", Approve: func(ctx context.Context, _ *approval.Request) elicit.Outcome {
			cancel()
			<-ctx.Done()
			return elicit.Outcome{Decision: elicit.Approved}
		}}, pusher, &aborted, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer, err := codexserver.New(tt.e, nil).Run(ctx, tt.turn)
			if !errors.As(err, tt.want) || (answer.Thread != "") != tt.threads {
				t.Errorf("%+v, %v", answer, err)
			}
		})
	}
	s := codexserver.New(engine.TurnFunc(func(context.Context, engine.Host, []protocol.InputItem) error { return nil }), nil)
	first := must.Get(s.Run(t.Context(), codexserver.Turn{Prompt: "p"}))(t)
	_, err := s.Run(t.Context(), codexserver.Turn{Prompt: "p", Thread: first.Thread})
	must.Fail(t, "a thread that has ended, on an engine that cannot resume", "engine.Resumer", err)
	if _, err := codexserver.New(resuming{pusher}, nil).Run(t.Context(), codexserver.Turn{Prompt: "p", Thread: first.Thread}); err != nil {
		t.Errorf("a thread that has ended, on an engine that resumes it: %v", err)
	}
}
