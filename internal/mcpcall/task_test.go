package mcpcall_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/internal/mcpcall"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/google/go-cmp/cmp"
)

// TestAnotherQuestionWithTheKey has a task replace its question by another one with the same key.
// The first is withdrawn, and the second is asked: an answer is never that to another question.
func TestAnotherQuestionWithTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked, told []string
		polls := 0
		m := deployer()
		m.Handle(modern.TasksGet.Name(), jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) (any, error) {
			const working = `{"resultType":"complete","taskId":"t","status":"input_required","pollIntervalMs":100,"inputRequests":{"sure":{"method":"elicitation/create","params":{"message":%q}}}}`
			mu.Lock()
			defer mu.Unlock()
			switch polls++; {
			case polls <= 2:
				return json.RawMessage(fmt.Sprintf(working, "Deploy?")), nil
			case polls <= 5 && told == nil:
				return json.RawMessage(fmt.Sprintf(working, "Delete?")), nil
			}
			return json.RawMessage(`{"resultType":"complete","taskId":"t","status":"completed","result":{"content":[]}}`), nil
		}))
		m.Handle(modern.TasksUpdate.Name(), jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
			var p struct{ InputResponses json.RawMessage }
			err := json.Unmarshal(r.Params, &p)
			mu.Lock()
			defer mu.Unlock()
			told = append(told, string(p.InputResponses))
			return json.RawMessage(`{"resultType":"complete"}`), err
		}))
		s := (&server{Mux: m}).connect(t, &mcpcall.Options{Ask: func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
			mu.Lock()
			asked = append(asked, string(params))
			first := len(asked) == 1
			mu.Unlock()
			if first {
				<-ctx.Done() // nobody answers before it is withdrawn
				return nil, ctx.Err()
			}
			return json.RawMessage(`{"action":"decline"}`), nil
		}})
		if _, err := s.Task(t.Context(), "t", &mcpcall.Call{Tool: "deploy"}); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{`{"message":"Deploy?"}`, `{"message":"Delete?"}`}, asked) + cmp.Diff([]string{`{"sure":{"action":"decline"}}`}, told); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
