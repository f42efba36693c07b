package mcp

import (
	stdjson "encoding/json"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"log/slog"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// parkOne returns a session with one call that waits for answers, and the state of the call.
func parkOne() (*Session, *call, string) {
	s := &Session{threads: &thread.Share{}, server: &Server{}, calls: calls{parked: map[string]*call{}}}
	c := &call{session: s, tool: "codex", digest: digest{1, 2, 3}, done: make(chan struct{})}
	return s, c, s.calls.park(c)
}

// TestEndedCallsAreForgotten parks calls that end before a client resumes them.
func TestEndedCallsAreForgotten(t *testing.T) {
	s, open, state := parkOne()
	var last string
	for n := range 3 * maxEnded {
		c := &call{session: s, tool: "codex", done: make(chan struct{})}
		if n%2 == 0 {
			s.calls.end(c, nil)
		}
		last = s.calls.park(c)
		if n%2 != 0 {
			s.calls.end(c, nil)
		}
	}
	if n := len(s.calls.parked); n != maxEnded+1 {
		t.Errorf("%d states are kept", n)
	}
	if _, err := s.calls.resume(last, digest{}); err != nil {
		t.Errorf("the last one: %v", err)
	}
	if got, err := s.calls.resume(state, open.digest); err != nil || got != open {
		t.Errorf("one that has not ended: %v", err)
	}
}

// TestManyUnknownTasks asks for more unknown tasks than may be looked up at a time, while no file can be read.
func TestManyUnknownTasks(t *testing.T) {
	tasks := NewTasks(taskfile.New(testenv.Home(t), nil), setting.Tasks{})
	threads := thread.NewTable(nil, &approve.Options{}).Share("")
	s := (&Server{Tools: tools.New(engine.TurnFunc(nil), nil), Tasks: tasks, Logger: slog.New(slog.DiscardHandler)}).NewSession(t.Context(), threads, tools.NewTurns(t.Context()))
	ours, theirs := jsonrpc.Pipe()
	client := s.Connect(s, true, func() {})
	peer := client.Peer(theirs, client.Handler(nil), jsonrpc.Hooks{})
	served := make(chan error, 1)
	go func() { served <- peer.Run(t.Context()) }()
	for range maxReads {
		s.reads <- struct{}{}
	}
	const more = 10
	for id := range maxLong + more {
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tasks/get","params":{"taskId":"unknown","_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{%q:{}}}}}}`, id, extensionTasks)
		must.OK(t, ours.Write(t.Context(), [][]byte{[]byte(line)}))
	}
	for n := range maxLong + more {
		if n == more {
			for range maxReads {
				<-s.reads
			}
		}
		line := must.Get(ours.Read(t.Context()))(t)
		var answer struct {
			ID    int
			Error *jsonrpc.Error
		}
		must.OK(t, stdjson.Unmarshal(line, &answer))
		want := "no such task"
		if answer.ID >= maxLong {
			want = "requests are under way"
		}
		if answer.Error == nil || !strings.Contains(answer.Error.Message, want) || n < more != (answer.ID >= maxLong) {
			t.Fatalf("answer %d: %s, want %q", n, line, want)
		}
	}
	must.OK(t, ours.Close())
	must.OK(t, <-served)
	s.running.Wait()
	if s.open.Busy() {
		t.Error("requests count as open")
	}
}

func TestFilePath(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///repo/a%20b": "/repo/a b", "file://localhost/work": "/work", "file://elsewhere/work": "", "https://example.com/": "",
		"file:relative": "", "": "", "file:///repo/../etc/%zz": "",
	} {
		got, ok := filePath(uri)
		if got != want && ok || ok != (want != "") {
			t.Errorf("%q: %q %v, want %q", uri, got, ok, want)
		}
	}
}

// TestCodexMembers checks the members of a question about a patch that a client of Codex reads.
func TestCodexMembers(t *testing.T) {
	changes := map[string]protocol.FileChange{"/work/a": {}}
	r := &approval.Request{Thread: approval.Thread{ID: "t"}, Turn: "2", Subject: approval.Patch{
		CallID: "1", Changes: changes, Reason: "tidy", GrantRoot: "/work",
	}}
	want := map[string]any{
		"threadId": "t", "codex_elicitation": "patch-approval", "codex_call_id": "1", "codex_changes": changes, "codex_reason": "tidy",
		"codex_grant_root": "/work", "codex_mcp_tool_call_id": "call", "codex_event_id": "2",
	}
	if diff := cmp.Diff(want, codexMembers("call", r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
