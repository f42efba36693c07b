package tools_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestRefusedByPolicy checks that the result and the transcript have what the engine refused by itself, and
// that a client gets an event only about a refusal with a remark.
func TestRefusedByPolicy(t *testing.T) {
	e := engine.TurnFunc(func(_ context.Context, host engine.Host, _ []protocol.InputItem) error {
		host.Emit(protocol.BackgroundEvent{Refused: &protocol.Refused{Command: []string{"rm", "x"}, Cwd: "/work", Reason: "not run: no one may ask"}})
		host.Emit(protocol.BackgroundEvent{Refused: &protocol.Refused{Changes: map[string]protocol.FileChange{"/work/y": {Add: &protocol.FileContent{}}}, Reason: "patch rejected: outside"}})
		host.Emit(protocol.BackgroundEvent{Refused: &protocol.Refused{Tool: "write", Reason: "rejected: a review"}})
		host.Emit(protocol.BackgroundEvent{Message: "Codex did not run it", Refused: &protocol.Refused{Command: []string{"mv", "z"}, Reason: "no"}})
		return nil
	})
	c := servertest.Connect(t, codexserver.New(e, nil), nil)
	result := c.CallTool(t, "codex", `{"prompt":"p"}`)
	want := `"refused":[{"kind":"command","what":"rm x","cwd":"/work","why":"not run: no one may ask","by":"policy","reason":"policy"},` +
		`{"kind":"patch","what":"/work/y","why":"patch rejected: outside","by":"policy","reason":"policy"},` +
		`{"kind":"other","what":"write","why":"rejected: a review","by":"policy","reason":"policy"},` +
		`{"kind":"command","what":"mv z","why":"no","by":"policy","reason":"policy"}]`
	if !strings.Contains(result, want) {
		t.Errorf("the result is %s", result)
	}
	shown := c.CallTool(t, "codex-show", `{"what":"transcript","threadId":"`+servertest.ThreadOf(t, result)+`"}`)
	for _, words := range []string{
		`refused by the engine: rm x\n  not run: no one may ask`, `refused by the engine: the patch\n  add /work/y\n  patch rejected: outside`,
		`refused by the engine: write\n  rejected: a review`, `refused by the engine:\n  Codex did not run it`,
	} {
		if !strings.Contains(shown, words) {
			t.Errorf("the transcript lacks %q: %s", words, shown)
		}
	}
	got := ""
	for !strings.Contains(got, "task_complete") { // they are handled beside the results
		runtime.Gosched()
		got = strings.Join(c.Events(), " ")
	}
	if strings.Count(got, "background_event") != 1 {
		t.Errorf("the events are %s", got)
	}
}
