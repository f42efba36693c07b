package codexserver_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// notes is an observer that records calls of tools and of Run.
type notes struct {
	mu   sync.Mutex
	seen []string
}

func (w *notes) note(words string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, words)
}

func (w *notes) Request(r *jsonrpc.Request) (end func()) {
	if r.Method != mcptypes.ToolsCall.Name() {
		return nil
	}
	w.note("call")
	return func() { w.note("answered") }
}

func (w *notes) Turn(thread string) codexserver.TurnObserver {
	if thread == "" {
		w.note("no thread")
	}
	w.note("turn")
	return noteTurn{w}
}

type noteTurn struct{ *notes }

func (w noteTurn) Event(m protocol.EventMsg) { w.note(m.EventType()) }
func (w noteTurn) Asked(*approval.Request)   { w.note("asked") }
func (w noteTurn) Decided(_ *approval.Request, d approval.Decision) {
	w.note("decided " + string(d.Decision))
}
func (w noteTurn) End(error) { w.note("end") }

// of returns what was recorded, without what the test does not check.
func (w *notes) of() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.seen), func(s string) bool { return s == "session_configured" || s == "background_event" })
}

// TestObserver observes the same turn, started in each possible way.
func TestObserver(t *testing.T) {
	turn := []string{"turn", "user_message", "task_started", "exec_approval_request", "asked", "decided approved", "agent_message", "task_complete", "end"}
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, o *codexserver.Options)
		want []string
	}{
		{"Run", func(t *testing.T, o *codexserver.Options) {
			must.Get(codexserver.New(engine.TurnFunc(pusher), o).Run(t.Context(), codexserver.Turn{Prompt: "p"}))(t)
		}, turn},
		{"a call of a client with a handshake", func(t *testing.T, o *codexserver.Options) {
			servertest.Connect(t, codexserver.New(engine.TurnFunc(pusher), o), nil).CallTool(t, "codex", `{"prompt":"p"}`)
		}, slices.Concat([]string{"call"}, turn, []string{"answered"})},
		{"a call of 2026-07-28", func(t *testing.T, o *codexserver.Options) {
			c := servertest.Dial(t, codexserver.New(engine.TurnFunc(pusher), o), nil)
			c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"},"_meta":`+servertest.Meta+`}`)
			synctest.Wait()
		}, slices.Concat([]string{"call"}, turn, []string{"answered"})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &notes{}
				tt.run(t, &codexserver.Options{Observer: w, Rules: approval.Rules{Allow: []approval.Rule{{Command: []string{"git", "push"}, Outside: true}}}})
				synctest.Wait()
				must.Equal(t, "seen", tt.want, w.of())
			})
		})
	}
}

// TestObserverOfTheBackground observes a turn that outlives its call.
func TestObserverOfTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &notes{}
		c := servertest.Connect(t, codexserver.New(engine.TurnFunc(pusher), &codexserver.Options{Observer: w}), nil)
		c.CallTool(t, "codex", `{"prompt":"p","background":true}`)
		synctest.Wait()
		if all := strings.Join(w.of(), " "); strings.Count(all, "answered") != 1 || !strings.Contains(all, "task_complete end") {
			t.Errorf("seen: %s", all)
		}
	})
}
