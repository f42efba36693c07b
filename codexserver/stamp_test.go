package codexserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// eventClient records the events of its calls and the threads of the questions.
type eventClient struct {
	*jsonrpc.Peer
	mu        sync.Mutex
	events    []toolEvent
	questions []string
}

type toolEvent struct {
	Meta struct{ ThreadID string } `json:"_meta"`
	Msg  struct {
		Type      string `json:"type"`
		SessionID string `json:"session_id"`
		ThreadID  string `json:"thread_id"`
		TurnID    string `json:"turn_id"`
	} `json:"msg"`
}

func (c *eventClient) ServeRPC(_ context.Context, r *jsonrpc.Request) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.Method {
	case "codex/event":
		var e toolEvent
		if err := json.Unmarshal(r.Params, &e); err != nil {
			return nil, err
		}
		c.events = append(c.events, e)
		return nil, nil
	case "elicitation/create":
		var q struct{ ThreadID string }
		if err := json.Unmarshal(r.Params, &q); err != nil {
			return nil, err
		}
		c.questions = append(c.questions, q.ThreadID)
		return json.RawMessage(`{"action":"decline"}`), nil
	}
	return nil, nil
}

func (c *eventClient) ask(t *testing.T, method, params string) string {
	t.Helper()
	var result json.RawMessage
	if err := c.Call(t.Context(), method, json.RawMessage(params), &result); err != nil {
		t.Fatal(err)
	}
	return string(result)
}

// TestMembersOf2026 checks that events and questions have their types and members of 2025,
// and the ids that Codex added later.
func TestMembersOf2026(t *testing.T) {
	everything := &startRecorder{}
	everything.TurnFunc = func(ctx context.Context, h engine.Host, _ []protocol.InputItem) error {
		for _, m := range []protocol.EventMsg{
			protocol.ExecCommandBegin{CallID: "c"}, protocol.ExecCommandEnd{CallID: "c"},
			protocol.PatchApplyBegin{CallID: "c"}, protocol.PatchApplyEnd{CallID: "c"},
			protocol.AgentMessage{Message: "m"}, protocol.TurnDiff{}, protocol.TokenCount{},
		} {
			h.Emit(m)
		}
		h.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "c", Command: []string{"ls"}, Cwd: "/"})
		h.ApprovePatch(ctx, protocol.PatchApprovalRequest{CallID: "c"})
		everything.host.Approve(ctx, &elicit.Question{Message: "Sure?"})
		return nil
	}
	withTurn := []string{
		"apply_patch_approval_request", "exec_approval_request", "exec_command_begin", "exec_command_end",
		"patch_apply_begin", "patch_apply_end", "task_complete", "task_started",
	}
	synctest.Test(t, func(t *testing.T) {
		c := &eventClient{}
		ours, theirs := jsonrpc.Pipe()
		c.Peer = jsonrpc.NewPeer(ours, c, nil)
		running, served := make(chan error, 1), make(chan error, 1)
		go func() { running <- c.Run(context.Background()) }()
		go func() { served <- codexserver.New(everything, nil).Serve(context.Background(), theirs) }()
		c.ask(t, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}`)
		thread := threadOf(t, c.ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"}}`))
		c.ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"p","threadId":%q}}`, thread))
		synctest.Wait() // the events are handled apart from the answer
		c.Close()
		if err := errors.Join(<-running, <-served); err != nil {
			t.Error(err)
		}

		turns := map[string]bool{}
		var have []string
		for _, e := range c.events {
			if e.Meta.ThreadID != thread {
				t.Errorf("%s has the thread %q, want %q", e.Msg.Type, e.Meta.ThreadID, thread)
			}
			if e.Msg.Type == "session_configured" && (e.Msg.ThreadID != thread || e.Msg.SessionID != thread) {
				t.Errorf("session_configured: %+v", e.Msg)
			}
			if e.Msg.TurnID != "" {
				turns[e.Msg.TurnID] = true
				have = append(have, e.Msg.Type)
			}
		}
		slices.Sort(have)
		if len(turns) != 2 || len(have) != 2*len(withTurn) {
			t.Errorf("%d events of two turns have %d ids", len(have), len(turns))
		}
		if got := slices.Compact(have); !slices.Equal(got, withTurn) {
			t.Errorf("turn_id stands in %q, want %q", got, withTurn)
		}
		if want := slices.Repeat([]string{thread}, 6); !slices.Equal(c.questions, want) {
			t.Errorf("the questions' threads are %q, want %q", c.questions, want)
		}
	})
}
