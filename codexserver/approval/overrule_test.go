package approval_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestOverrule asks about what a reviewer denied. The question says what an approval does.
func TestOverrule(t *testing.T) {
	const does = "It was denied by Codex's reviewer, a model, which says: \"no\".\n" +
		"Your approval runs nothing: Codex's model and its reviewer are told that you allow exactly this, and the reviewer decides once more.\n" +
		"Only a person may approve this."
	for name, tt := range map[string]struct {
		r            protocol.Refused
		first, brief string
		partial      bool
	}{
		"command": {
			protocol.Refused{Command: []string{"rm", "-r", "a\nb"}, Cwd: "/work"}, "Allow what Codex's reviewer denied: `rm -r $'a\\nb'` in `/work`?",
			"Runs nothing now, overrules Codex's reviewer, which denied:\n`` rm -r $'a\\nb' in `/work` ``\nIt and the model are told that you allow exactly this; it decides again.", false,
		},
		"patch": {protocol.Refused{Changes: map[string]protocol.FileChange{"/b": {}, "/a": {}}}, "Allow what Codex's reviewer denied: changes to `/a /b`?", "", false},
		"patch that replaces": {
			protocol.Refused{Changes: map[string]protocol.FileChange{
				"/work/b": {Update: &protocol.FileUpdate{UnifiedDiff: "@@ -1 +1 @@\n-b\n+x\n", Replaces: true}}, "/work/a": {Add: &protocol.FileContent{Content: "a\n"}},
			}, Cwd: "/work"}, "Allow what Codex's reviewer denied: changes to `/work/a /work/b` in `/work`?\n- replace `/work/b` (+1 -1)\n  ```diff\n  @@ -1 +1 @@\n  -b\n  +x\n  ```", "", false,
		},
		"tool": {protocol.Refused{Tool: "s/write\u202e"}, "Allow what Codex's reviewer denied: the tool `s/write\\u{202e}` (contains hidden characters)?", "", false},
		"long": {protocol.Refused{Command: []string{"echo", strings.Repeat("x", 5000)}}, "", "", true},
	} {
		tt.r.Reason = `denied by Codex's reviewer, a model, which says: "no"`
		q := (approval.Overrule{Refused: tt.r}).Question("", "")
		first, ends := strings.CutSuffix(q.Message, "\n"+does)
		must.Equal(t, name+": it ends with what it does", true, ends)
		if tt.first != "" {
			must.Equal(t, name, tt.first, first)
		}
		if tt.brief != "" {
			must.Equal(t, name, tt.brief, q.For(elicit.Client{Name: "claude-code", ProtocolVersion: "2025-11-25"}, nil).Message)
		}
		if q.Partial != tt.partial || q.Partial != (q.Meta != nil) || !q.Once {
			t.Errorf("%s: partial %t, once %t, meta %v", name, q.Partial, q.Once, q.Meta)
		}
	}
}
