package native

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

// TestNarrower combines policies of then and of now: what either forbids is forbidden.
func TestNarrower(t *testing.T) {
	const workspace = protocol.SandboxWorkspaceWrite
	now := protocol.SandboxPolicy{Mode: workspace, WritableRoots: []string{"/a", "/b"}, NetworkAccess: true}
	strict := protocol.SandboxPolicy{Mode: workspace, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}
	for _, tt := range []struct {
		name           string
		now, was, want protocol.SandboxPolicy
	}{
		{"the same", now, now, now},
		{"no network, fewer folders", now, protocol.SandboxPolicy{Mode: workspace, WritableRoots: []string{"/b", "/c"}, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true},
			protocol.SandboxPolicy{Mode: workspace, WritableRoots: []string{"/b"}, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}},
		{"no folder", now, protocol.SandboxPolicy{Mode: workspace, NetworkAccess: true}, protocol.SandboxPolicy{Mode: workspace, NetworkAccess: true}},
		{"strict now", strict, now, strict},
	} {
		if diff := cmp.Diff(tt.want, box.Narrower(tt.now, tt.was), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
