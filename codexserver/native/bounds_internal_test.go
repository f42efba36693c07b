package native

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestLists has lists that are shown whole, and longer ones.
func TestLists(t *testing.T) {
	for n, want := range map[int]string{0: "", 100: "n99", 101: "and 1 more"} {
		tools := []model.Tool{{Type: webSearchType}}
		for i := range n {
			tools = append(tools, model.Tool{Name: fmt.Sprint("n", i)})
		}
		if got := names(tools); len(got) != n && n <= 100 || n > 0 && got[len(got)-1] != want {
			t.Errorf("%d tools: %q", n, got)
		}
	}
	for n, want := range map[int]string{1: "p", 50: "p", 51: "and 1 more"} {
		paths := strings.Split(strings.Repeat("p ", n-1)+"p", " ")
		if got := strings.Split(showPaths(paths), ", "); got[len(got)-1] != want || len(got) != n {
			t.Errorf("%d paths: %q", n, got)
		}
	}
}

// TestInbox closes an inbox only when its messages were taken.
func TestInbox(t *testing.T) {
	b := newInbox()
	b.open("/work")
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 100 {
				if err := b.put(t.Context(), protocol.TextInput("hi")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	taken := 0
	for taken < 200 && !t.Failed() {
		taken += len(b.take())
		runtime.Gosched()
	}
	all.Wait()
	if taken != 200 || !b.empty() || !b.done() {
		t.Errorf("%d messages", taken)
	}
	if err := b.put(t.Context(), protocol.TextInput("hi")); !errors.Is(err, engine.ErrNoTurn) {
		t.Errorf("after the end: %v", err)
	}
	late := newInbox()
	late.messages = make([]inboxMessage, 3)
	if late.done() || late.closed {
		t.Error("an inbox with messages was closed")
	}
	if n := len(late.close()); n != 3 || !late.closed || !late.empty() {
		t.Errorf("%d messages at the end", n)
	}
	<-late.ready
	late.close() // again
}

// TestContinuable has turns of servers that ended.
func TestContinuable(t *testing.T) {
	for _, tt := range []struct {
		was       *rollout.Turn
		continues bool
		want      string // a part of the reason why it is not continued
	}{
		{nil, true, "before this turn began"},
		{&rollout.Turn{}, true, ""},
		{&rollout.Turn{}, false, "was opened for something else"},
		{&rollout.Turn{Foreign: true}, true, "was continued by another program"},
		{&rollout.Turn{End: &rollout.End{}, Foreign: true, Continued: 9}, false, ""},
		{&rollout.Turn{Continued: 4}, true, ""},
		{&rollout.Turn{Continued: 5}, true, "ended 6 times"},
	} {
		err := (&conversation{continues: tt.continues}).continuable(tt.was)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.was, err, tt.want)
		}
	}
}

// TestRestoredBudget checks that a turn that another process began has used what the thread has used
// since its beginning, and no more.
func TestRestoredBudget(t *testing.T) {
	usage := func(n int64) *protocol.TokenUsage { return &protocol.TokenUsage{TotalTokens: n} }
	for _, tt := range []struct {
		used, before *protocol.TokenUsage
		want         int64
	}{
		{nil, nil, 0}, {usage(7), nil, 7}, {usage(7), usage(5), 2}, {usage(5), usage(7), 0},
		{&protocol.TokenUsage{InputTokens: 4, OutputTokens: 5}, usage(5), 4},
	} {
		var b budget
		if b.restore(tt.used, tt.before); b.tokens != tt.want {
			t.Errorf("%v after %v: %d, want %d", tt.used, tt.before, b.tokens, tt.want)
		}
	}
}

// TestNarrow continues a turn with policies of then and of now: what either forbids is forbidden.
func TestNarrow(t *testing.T) {
	const workspace = protocol.SandboxWorkspaceWrite
	now := protocol.SandboxPolicy{Mode: workspace, WritableRoots: []string{"/a", "/b"}, NetworkAccess: true}
	for _, tt := range []struct {
		name string
		had  *protocol.TurnContext
		want protocol.SandboxPolicy
	}{
		{"unknown", nil, now},
		{"the same", &protocol.TurnContext{SandboxPolicy: now}, now},
		{"another mode", &protocol.TurnContext{SandboxPolicy: protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}}, now},
		{"no network, fewer folders", &protocol.TurnContext{SandboxPolicy: protocol.SandboxPolicy{Mode: workspace, WritableRoots: []string{"/b", "/c"}, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}},
			protocol.SandboxPolicy{Mode: workspace, WritableRoots: []string{"/b"}, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}},
		{"no folder", &protocol.TurnContext{SandboxPolicy: protocol.SandboxPolicy{Mode: workspace, NetworkAccess: true}}, protocol.SandboxPolicy{Mode: workspace, NetworkAccess: true}},
	} {
		c := &conversation{}
		c.now.SandboxPolicy = now
		c.narrow(tt.had)
		if diff := cmp.Diff(tt.want, c.now.SandboxPolicy); diff != "" || !c.continues {
			t.Errorf("%s: continues %t, (-want +got):\n%s", tt.name, c.continues, diff)
		}
	}
	strict := protocol.SandboxPolicy{Mode: workspace, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}
	c := &conversation{}
	c.now.SandboxPolicy = strict
	c.narrow(&protocol.TurnContext{SandboxPolicy: now})
	if diff := cmp.Diff(strict, c.now.SandboxPolicy); diff != "" {
		t.Errorf("strict now (-want +got):\n%s", diff)
	}
}
