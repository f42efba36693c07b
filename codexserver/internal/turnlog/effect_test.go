package turnlog_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestLongCommand checks which commands are in the record, and of which there is only the sum. Two ways to cut the same
// bytes into words have different sums.
func TestLongCommand(t *testing.T) {
	const most = 64 << 10
	words := strings.Repeat("x", most-1)
	sums := map[string]bool{}
	for _, tt := range []struct {
		command []string
		long    bool
	}{
		{[]string{words, "y"}, false},
		{[]string{words, "yz"}, true},
		{[]string{words + "y", "z"}, true},
	} {
		line, _ := turnlog.EffectOf(protocol.ExecCommandBegin{CallID: "c", Command: tt.command, Cwd: "/w"})
		if line.Sum != "" {
			sums[line.Sum] = true
		}
		want := audit.Line{Effect: audit.Begins, Call: "c", Kind: "command", Cwd: "/w", Command: tt.command}
		if tt.long {
			want.Command, want.Sum = nil, line.Sum
		}
		if diff := cmp.Diff(want, line); diff != "" || tt.long != (len(line.Sum) == 64) {
			t.Errorf("%d and %d bytes: the sum %q, %.300s", len(tt.command[0]), len(tt.command[1]), line.Sum, diff)
		}
	}
	if len(sums) != 2 {
		t.Errorf("%d sums, want 2", len(sums))
	}
}

// TestFilesOfAPatch checks of which files the record has the content after a patch: a file that moves counts at both
// of its paths, and each path counts once.
func TestFilesOfAPatch(t *testing.T) {
	moved := func(to string) protocol.FileChange {
		return protocol.FileChange{Update: &protocol.FileUpdate{MovePath: &to}}
	}
	_, files := turnlog.EffectOf(protocol.PatchApplyBegin{CallID: "c", Changes: map[string]protocol.FileChange{
		"/w/added": {Add: &protocol.FileContent{}}, "/w/gone": {Delete: &protocol.FileContent{}}, "/w/new": {Update: &protocol.FileUpdate{}},
		"/w/old": moved("/w/new"), "/w/same": moved("/w/same"), "/w/z": moved("/w/a"),
	}})
	if diff := cmp.Diff([]string{"/w/a", "/w/added", "/w/gone", "/w/new", "/w/old", "/w/same", "/w/z"}, files); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
