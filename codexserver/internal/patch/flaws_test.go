//go:build unix

package patch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/google/go-cmp/cmp"
)

// flaws are published flaws of other programs that write files, by the ids under which they were published.
// A text is a patch, or its changes; PATH is the folder.
var flaws = []struct {
	id    string
	texts []string
	want  string // "refused" or "asked"
}{
	{"CVE-2025-54794", []string{"*** Add File: PATH-evil/x\n+x", "*** Add File: ../work-evil/x\n+x", "*** Add File: PATHx\n+x"}, "asked"},
	{"CVE-2025-62353", []string{"*** Add File: ../x\n+x", "*** Add File: a/../../x\n+x", "*** Add File: /etc/codex-mcp-x\n+x", "*** Update File: a.txt\n*** Move to: ../x\n@@\n-one\n+1"}, "asked"},
	{"CVE-2025-22873", []string{"*** Add File: ../\n+x", "*** Add File: ..\n+x", "*** Add File: sub/../..\n+x"}, "asked"},
	{"CVE-2026-39861", []string{"*** Add File: out/x\n+x", "*** Update File: out/secret\n@@\n-s\n+x", "*** Delete File: out/secret", "*** Add File: chain/x\n+x"}, "asked"},
	{"CVE-2025-53109", []string{"*** Update File: link\n@@\n-s\n+x", "*** Add File: dangling\n+x", "*** Update File: a.txt\n*** Move to: out/x\n@@\n-one\n+1"}, "asked"},
	{"overpatch", []string{"*** Add File: missing/../../x\n+x", "*** Add File: out/new/deep/x\n+x", "*** Add File: new/x\n+x\n*** Add File: ../y\n+y"}, "asked"},
	{"CVE-2019-13636", []string{"*** Add File: sub/x\n+x\n*** Add File: out/x\n+x"}, "asked"},
	{"CVE-2026-45571", []string{"*** Add File: .git/hooks/x\n+x", "*** Add File: .GIT/config\n+x", "*** Add File: git~1/config\n+x", "*** Add File: sub/.g\u200cit/config\n+x"}, "asked"},
	{"CVE-2025-54135", []string{"*** Add File: .mcp.json\n+x", "*** Add File: .cursor/mcp.json\n+x", "*** Add File: .vscode/settings.json\n+x", "*** Add File: .git/hooks/x\n+x", "*** Add File: .envrc\n+x"}, "asked"},
	{"CVE-2025-59944", []string{"*** Add File: .MCP.json\n+x", "*** Add File: .Cursor/mcp.json\n+x", "*** Add File: .mcp.json.\n+x", "*** Add File: .mcp.j\u017fon\n+x"}, "asked"},
	{"CVE-2025-53773", []string{"*** Add File: .vscode/settings.json\n+x", "*** Add File: codex-mcp.toml\n+x", "*** Add File: .codex/config.toml\n+x"}, "asked"},
	{"CVE-2025-53536", []string{"*** Add File: .vscode/tasks.json\n+x", "*** Add File: .idea/x.xml\n+x", "*** Add File: .devcontainer/devcontainer.json\n+x"}, "asked"},
	{"CVE-2026-54325", []string{"*** Add File: .pi/extensions/x.ts\n+x", "*** Add File: .opencode/plugin/x.ts\n+x"}, "asked"},
	{"CVE-2026-48124", []string{"*** Add File: .claude/settings.json\n+x", "*** Add File: .gemini/settings.json\n+x", "*** Add File: sub/.codex/config.toml\n+x", "*** Add File: .cursor/hooks.json\n+x"}, "asked"},
	{"CVE-2018-1000156", []string{"1c\n!touch MARK\n.\nw\n", "--- a.txt\n+++ a.txt\n1c\n!touch MARK\n.\nw\nq\n", "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n"}, "refused"},
	{"CVE-2023-25652", []string{"diff --git a/a.txt b/a.txt\nnew mode 100755\n", "diff --git a/a.txt b/a.txt\nGIT binary patch\nliteral 1\nIcmZPo\n", "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc\n"}, "refused"},
}

// TestPublishedFlaws checks that none of the patches is applied without a question: it cannot be
// read, it cannot be planned, it leaves the folder, or it writes files that other programs run.
func TestPublishedFlaws(t *testing.T) {
	for _, flaw := range flaws {
		t.Run(flaw.id, func(t *testing.T) {
			for _, text := range flaw.texts {
				top, err := filepath.EvalSymlinks(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				work := filepath.Join(top, "work")
				writeTree(t, top, map[string]string{"outside/secret": "s\n", "work/a.txt": "one\n", "work/sub/b": "b\n"})
				for name, to := range map[string]string{"out": "../outside", "chain": "out", "link": "../outside/secret", "dangling": "../outside/new"} {
					if err := os.Symlink(to, filepath.Join(work, name)); err != nil {
						t.Fatal(err)
					}
				}
				outside := filepath.Join(top, "outside")
				before := readTree(t, outside, outside)
				if flaw.want == "refused" {
					if _, err := patch.Parse(text); err == nil {
						t.Errorf("it was read: %q", text)
					}
					continue
				}
				plan, err := planOf(work, strings.ReplaceAll(text, "PATH", work))
				if err != nil && strings.Contains(err.Error(), "invalid patch") {
					t.Errorf("the row shows nothing: %v", err)
				}
				if err == nil && plan.Within([]string{work}) && len(plan.Protected([]string{work})) == 0 {
					t.Errorf("it is applied without a question: %q", text)
				}
				if diff := cmp.Diff(before, readTree(t, outside, outside)); diff != "" {
					t.Errorf("%q changed files outside:\n%s", text, diff)
				}
			}
		})
	}
	work := t.TempDir()
	writeTree(t, work, map[string]string{"a.txt": "one\n"})
	if p := plan(t, work, "*** Update File: a.txt\n@@\n-one\n+1"); !p.Within([]string{work}) || len(p.Protected([]string{work})) > 0 {
		t.Error("a plain patch is asked about, so the rows show nothing")
	}
}
