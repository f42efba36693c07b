package approval_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// TestBesideBrief asks about two conversations in a client that cuts messages: all of the pair is there.
func TestBesideBrief(t *testing.T) {
	for name, tt := range map[string]struct {
		r       protocol.Access
		partial bool
	}{
		"its folder":    {protocol.Access{Folder: "/repo/sub", Beside: []protocol.Overlap{{Folder: "/repo/sub", Other: "/repo/other"}}}, false},
		"another of it": {protocol.Access{Folder: "/work", Beside: []protocol.Overlap{{Folder: "/repo/sub", Other: "/repo/other"}}}, false},
		"two": {protocol.Access{Folder: "/work", Beside: []protocol.Overlap{
			{Folder: "/repo/sub", Other: "/repo/other"}, {Folder: "/repo/sub", Other: "/x"},
		}}, false},
		"too long": {protocol.Access{Folder: "/repo/sub", Beside: []protocol.Overlap{{Folder: "/repo/sub", Other: strings.Repeat("/long", 99)}}}, true},
	} {
		q := (approval.Access{Access: tt.r}).Question("codex-mcp", "").For(elicit.Client{Name: "claude-code", ProtocolVersion: "2025-11-25"}, nil)
		t.Logf("%s\n%s", name, q.Message)
		if lines := strings.Split(q.Message, "\n"); lines[0] != "Work beside another:" || len(lines) > plain.MaxLines {
			t.Errorf("%s: %q", name, lines)
		}
		for _, want := range []string{"/repo/sub", "/repo/other", "wait", "worktree: true"} {
			if !tt.partial && !strings.Contains(q.Message, want) {
				t.Errorf("%s: no %q in %s", name, want, q.Message)
			}
		}
		if partial := strings.Contains(q.Message, "Not shown whole."); partial != tt.partial {
			t.Errorf("%s: partial %t", name, partial)
		}
	}
}
