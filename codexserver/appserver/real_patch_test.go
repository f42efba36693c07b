//go:build realcodex && unix

package appserver_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// newReads: Codex reads the files of a patch before it asks, also in a sandbox that only reads.
var newReads = fact{0, 171, 0}

// TestRealLostFiles has the real Codex apply patches that destroy something. Each question says so.
func TestRealLostFiles(t *testing.T) {
	t.Parallel()
	const update = "@@\n-a1\n+A1\n"
	for name, tt := range map[string]struct {
		patch string
		asked []string // lines of the question
		begun string   // what the event says of it with a policy that asks nobody, "" for what the question says
		gone  string   // what is in no file afterwards, "" if nothing is lost
	}{
		"replaces":                {"*** Add File: a\n+x\n", []string{"- replace `W/a` (+1 -2)", "-a1", "-a2"}, "replace W/a -2", "a2"},
		"replaces through a link": {"*** Add File: link\n+x\n", []string{"- replace `W/link` → `W/a` (+1 -2)", "-a2"}, "replace W/a -2", "a2"},
		"moves over":              {"*** Update File: a\n*** Move to: b\n" + update, []string{"- delete `W/a` (+0 -2): it moves over W/b", "- replace `W/b` (+2 -1)", "-b1"}, "replace W/b -1", "b1"},
		"moves over a link":       {"*** Update File: b\n*** Move to: link\n@@\n-b1\n+B1\n", []string{"- delete `W/b` (+0 -1): it moves over W/a", "- replace `W/link` → `W/a` (+1 -2)", "-a2"}, "replace W/a -2", "a2"},
		"deletes":                 {"*** Delete File: b\n", []string{"- delete `W/b` (+0 -1)", "-b1"}, "delete W/b -1", "b1"},
		"deletes a link":          {"*** Delete File: link\n", []string{"- delete `W/link` (+0 -1): a symbolic link, and what it leads to stays"}, "delete W/link -1", ""},
		"a folder in the way":     {"*** Add File: sub\n+x\n", []string{"- add `W/sub` (+1 -0): a folder is there"}, "add W/sub -0", ""},
		"another case":            {"*** Update File: a\n*** Move to: A\n" + update, []string{"- update `W/a` and move it to `W/A` (+1 -1)"}, "update W/a -1", ""},
	} {
		for _, policy := range []string{"on-request", "never"} {
			if byDay := name == "replaces" || name == "moves over a link"; !nightly.Tests() && !byDay {
				continue
			}
			t.Run(name+" "+policy, func(t *testing.T) {
				t.Parallel()
				if policy == "on-request" && !strings.HasPrefix(tt.patch, "*** Add") {
					needs(t, newReads)
				}
				sandbox := map[string]string{"on-request": "read-only", "never": "workspace-write"}[policy]
				r := newReal(t, "approval_policy = \""+policy+"\"\nsandbox_mode = \""+sandbox+"\"", providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{
					"cmd": "apply_patch <<'EOF'\n*** Begin Patch\n" + tt.patch + "*** End Patch\nEOF\n",
				})), report)
				for file, content := range map[string]string{"a": "a1\na2\n", "b": "b1\n", "sub/s": "s\n"} {
					must.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(r.cwd, file)), 0o700), os.WriteFile(filepath.Join(r.cwd, file), []byte(content), 0o600))
				}
				must.OK(t, os.Symlink("a", filepath.Join(r.cwd, "link")))
				asked := ""
				h := &recorder{patch: func(_ context.Context, q approval.Patch) elicit.Outcome {
					asked += q.Question("", "").Message
					return elicit.Outcome{Decision: elicit.Approved}
				}}
				must.OK(t, r.start(t, h, protocol.Config{}).Turn(t.Context(), text("go")))
				for _, line := range tt.asked {
					line = strings.ReplaceAll(line, "W/", r.cwd+"/")
					if has := strings.Contains("\n"+asked+"\n", "\n"+line+"\n") || strings.Contains(asked, "\n"+approval.DiffIndent+line+"\n"); has != (policy == "on-request") {
						t.Errorf("%q in the question is %t: %s", line, has, asked)
					}
				}
				var begun []string
				for _, m := range h.all() {
					if e, ok := m.(protocol.PatchApplyEnd); ok && (e.Success || e.Stderr == "") == strings.HasPrefix(name, "a folder") {
						t.Errorf("it ended with %+v", e)
					}
					if e, ok := m.(protocol.PatchApplyBegin); ok {
						for path, c := range e.Changes {
							kind := c.Kind()
							if c.Replaces() {
								kind = "replace"
							}
							_, removed := c.Lines()
							begun = append(begun, kind+" "+strings.Replace(path, r.cwd, "W", 1)+" -"+string(rune('0'+removed)))
						}
					}
				}
				if !strings.Contains(strings.Join(begun, ", "), tt.begun) {
					t.Errorf("the event has %v, want %s", begun, tt.begun)
				}
				all := ""
				for _, file := range []string{"a", "b", "A", "link"} {
					content, _ := os.ReadFile(filepath.Join(r.cwd, file))
					all += string(content)
				}
				if tt.gone != "" && strings.Contains(all, tt.gone) || tt.gone == "" && !strings.Contains(all, "a2") {
					t.Errorf("left: %q", all)
				}
			})
		}
	}
}
