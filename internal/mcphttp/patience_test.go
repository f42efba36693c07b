package mcphttp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
)

// TestPatience ends a call while its question is open. The client still has the question, and
// answers it although the stream that brought it has ended.
func TestPatience(t *testing.T) {
	t.Parallel() // it waits
	s := open(t, asking, &codexserver.Options{Calls: codexserver.CallOptions{Patience: time.Second}}, nil)
	h := s.initialize(nil)
	v := s.stream(http.MethodPost, codex("1", "go", ""), h)
	v.until(`"elicitation/create"`)
	var still struct {
		Result struct {
			StructuredContent struct{ ThreadID, Status, Content string }
		}
	}
	if err := json.Unmarshal([]byte(v.until(`"result"`)), &still); err != nil {
		t.Fatal(err)
	}
	got := still.Result.StructuredContent
	if got.Status != "waiting" || !strings.HasPrefix(got.Content, "Still running, and waiting for approval of `git init`. The client still has the question.") {
		t.Errorf("%+v", got)
	}
	if rest := v.next(); rest != "" {
		t.Errorf("after the result: %s", rest)
	}
	if got := s.post(`{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}`, h); got.status != 202 {
		t.Errorf("the answer: %+v", got)
	}
	wait := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"codex-wait","arguments":{"threadIds":[%q]}}}`, got.ThreadID)
	var last reply
	for range 60 { // each takes a second at most
		if last = s.post(wait, h); strings.Contains(last.body, "decided approved") {
			return
		}
	}
	t.Errorf("%+v", last)
}
