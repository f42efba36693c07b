package methods_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// faulty is an engine whose every method but Start fails.
type faulty struct {
	*servertest.Engine
	err error
}

func (f faulty) AuthStatus(context.Context, protocol.GetAuthStatusParams) (*protocol.GetAuthStatusResult, error) {
	return nil, f.err
}
func (f faulty) Logout(context.Context) error { return f.err }
func (f faulty) SearchFiles(context.Context, protocol.FuzzyFileSearchParams) (*protocol.FuzzyFileSearchResult, error) {
	return nil, f.err
}

// TestFaultsOfTheEngine answers a fault of the engine with an error that says what failed. What is
// wrong with a request has another code.
func TestFaultsOfTheEngine(t *testing.T) {
	for _, tt := range []struct {
		err   error
		wrong bool
	}{{errors.New("broken"), false}, {&engine.RefusedError{Err: errors.New("broken")}, true}, {fmt.Errorf("broken: %w", engine.ErrNotFound), true}} {
		synctest.Test(t, func(t *testing.T) {
			c := servertest.Dial(t, codexserver.New(faulty{&servertest.Engine{}, tt.err}, nil), nil)
			for _, call := range []struct {
				method, params string
				tells          bool // it tells wrong requests from faults
			}{
				{"getAuthStatus", `{}`, false}, {"logoutChatGpt", `{}`, false},
				{"fuzzyFileSearch", `{"query":"x","roots":["/"]}`, true},
			} {
				code := "(-32603)"
				if call.tells && tt.wrong {
					code = "(-32600)"
				}
				if got := c.Ask(t, call.method, call.params); !strings.Contains(got, code) || !strings.Contains(got, "broken") {
					t.Errorf("%s, %v: %s, want %s", call.method, tt.err, got, code)
				}
			}
			for _, line := range c.Heard() {
				if strings.Contains(line, "authStatusChange") {
					t.Errorf("after a failed change: %s", line)
				}
			}
		})
	}
}

// TestNewSearchEndsTheOld begins a search with the token of one that runs, and one with another.
func TestNewSearchEndsTheOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(&servertest.Engine{}, nil), nil)
		search := func(query, token string) <-chan error {
			call := c.Start(t.Context(), "fuzzyFileSearch", map[string]any{"query": query, "roots": []string{}, "cancellationToken": token})
			ended := make(chan error, 1)
			go func() { ended <- call.Result(nil) }()
			synctest.Wait()
			return ended
		}
		over := func(ended <-chan error) bool {
			select {
			case err := <-ended:
				return err == nil
			default:
				return false
			}
		}
		first, other := search("slow", "a"), search("slow", "b")
		if over(first) || over(other) {
			t.Error("a search has ended")
		}
		second := search("slow", "a")
		if !over(first) || over(second) || over(other) {
			t.Error("the second search did not end the first alone")
		}
		if !over(search("x", "b")) || !over(other) || over(second) {
			t.Error("a quick search did not end its predecessor alone")
		}
		if !over(search("x", "a")) || !over(second) {
			t.Error("the end of the first search forgot the second")
		}
	})
}

// TestWhoIsAsked sends each kind of question to a client of September 2025, whose answers are of the
// client, and are no lasting rule.
func TestWhoIsAsked(t *testing.T) {
	for method, ask := range map[string]func(ctx context.Context, h engine.Host) elicit.Outcome{
		"execCommandApproval": func(ctx context.Context, h engine.Host) elicit.Outcome {
			return h.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "1", Command: []string{"make"}, Cwd: "/w"})
		},
		"applyPatchApproval": func(ctx context.Context, h engine.Host) elicit.Outcome {
			return h.ApprovePatch(ctx, protocol.PatchApprovalRequest{CallID: "1", Changes: map[string]protocol.FileChange{"/w/a": {Add: &protocol.FileContent{}}}, Cwd: "/w"})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got []elicit.Decision
			e := engine.TurnFunc(func(ctx context.Context, h engine.Host, _ []protocol.InputItem) error {
				got = append(got, ask(ctx, h).Decision)
				return nil
			})
			d := &servertest.Desk{Answer: servertest.Never}
			c := servertest.Dial(t, codexserver.New(e, &codexserver.Options{Desk: d}), nil)
			id := c.NewConversation(t)
			c.Ask(t, "sendUserMessage", fmt.Sprintf(`{"conversationId":%q,"items":[]}`, id))
			synctest.Wait()
			asked := c.Received(method)
			var params struct {
				ConversationID string `json:"conversation_id"`
				CallID         string `json:"call_id"`
			}
			if len(asked) != 1 || json.Unmarshal(asked[0], &params) != nil || params.ConversationID != id || params.CallID != "1" {
				t.Errorf("%s: asked %s", method, asked)
			}
			if len(got) != 1 || got[0] != elicit.Approved || len(d.Decisions()) != 1 || d.Decisions()[0] != "approved by "+string(approval.ByClient) {
				t.Errorf("%s: %v, %q", method, got, d.Decisions())
			}
		})
	}
}
