//go:build unix

package patch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestProtected(t *testing.T) {
	top := t.TempDir()
	work := filepath.Join(top, ".claude", "worktrees", "work") // folders above the working folder do not count
	for _, dir := range []string{"bare/objects", "bare/refs", "half/objects", "refs/refs", "wired", "plain", "repo/.git/hooks"} {
		must.OK(t, os.MkdirAll(filepath.Join(work, dir), 0o777))
	}
	writeTree(t, work, map[string]string{"wired/commondir": "../half\n"})
	for name, to := range map[string]string{"hooks": "repo/.git/hooks", "b": "bare", ".zed": "plain"} {
		must.OK(t, os.Symlink(to, filepath.Join(work, name)))
	}
	tests := []struct {
		path string
		want bool
	}{
		{"main.go", false}, {".gitignore", false}, {".github/workflows/x.yml", false}, {"git/config", false}, {".config/x", false},
		{"config", false}, {"half/config", false}, {"half/refs/x", true}, {"plain/HEAD", false}, {".", false},
		{"claude/x", false}, {".clauderc", false}, {"vscode/x", false}, {".env", false}, {".envrc.sample", false}, {"git~", false}, {"git~x", false}, {"gitignore~1", false}, {"a.b~1", false},
		{"refs/config", false}, {"wired/config", false},

		{".git/config", true}, {".git", true}, {"a/b/c/.git", true}, {"a/.git/x", true}, {".GIT/x", true}, {".gIt", true},
		{".git /x", true}, {".git.../x", true}, {".git . /x", true}, {".git::$INDEX_ALLOCATION/x", true}, {".git:stream", true},
		{"git~1/x", true}, {"GIT~2/config", true}, {"gi7eba~1/x", true}, {"x~1", true}, // they may be any name
		{`a\.git\x`, true}, {`.git\x`, true},
		{".g\u200cit/x", true}, {".\u200dgit/x", true}, {"\ufeff.git/x", true}, {".gi\u00adt/x", true}, {".gi\u034ft/x", true}, {".gıt/x", true}, {".g\u0130t/x", true},
		{".zed/tasks.json", true}, // although the folder has another name
		{"hooks/pre-commit", true}, {"plain/../.git/x", true},

		// Each name of the list has a row of TestProtectedNames.
		{"CODEX-~1.TOM", true}, {"MCP~1.JSO", true}, {".mcp.j\u017fon", true}, {".v\u017fcode/x", true}, {".hus\u212ay/x", true}, {"OPENCO~1/x", true},
		{"opencode/x", false}, {".pip/x", false},

		{"bare/config", true}, {"bare/Config", true}, {"bare/hooks/x", true}, {"bare/HEAD", true}, {"bare/main.go", false}, {"b/config", true},
		{"wired/HEAD", true}, {"wired/main.go", false},
	}
	for _, tt := range tests {
		plan, err := planOf(work, "*** Add File: "+tt.path+"\n+x")
		if err != nil {
			if tt.want || tt.path != "." {
				t.Errorf("%q: %v", tt.path, err)
			}
			continue
		}
		must.Equal(t, tt.path+" is protected", tt.want, len(plan.Protected([]string{work, "/tmp"})) > 0)
	}
}

// TestProtectedNames checks every name of the lists, and that none is missing in the other letter case.
func TestProtectedNames(t *testing.T) {
	work := t.TempDir()
	for _, dir := range []string{"bare/objects", "bare/refs"} {
		must.OK(t, os.MkdirAll(filepath.Join(work, dir), 0o777))
	}
	var paths []string
	all := strings.Fields(`.git .hg .jj .codex codex-mcp.toml .claude .gemini .mcp.json .opencode opencode.json opencode.jsonc .pi .roo .kiro
		.windsurf .amp .continue .clinerules .vscode .cursor .idea .zed .devcontainer .envrc .husky`)
	_, page, _ := strings.Cut(string(must.Get(os.ReadFile("../../../docs/rules.md"))(t)), "other programs run or obey:")
	page, _, _ = strings.Cut(page, ";")
	must.Equal(t, "the names in rules.md", all, strings.FieldsFunc(strings.ReplaceAll(page, "and bare repositories", ""), func(r rune) bool { return strings.ContainsRune("`, \n", r) }))
	for _, name := range all {
		paths = append(paths, name, "a/"+strings.ToUpper(name)+"/x")
	}
	for name := range strings.FieldsSeq("config config.worktree commondir gitdir head hooks info modules objects packed-refs refs reftable worktrees") {
		paths = append(paths, "bare/"+name, "bare/"+strings.ToUpper(name)+"/x")
	}
	for _, path := range paths {
		if len(patch.ProtectedOf([]string{filepath.Join(work, path)}, []string{work})) == 0 {
			t.Errorf("%s is not protected", path)
		}
	}
	for path, roots := range map[string][]string{
		"a/.vscode/x":  {"/nonexistent", work, work + "/a/.vscode/x/y"}, // a folder below the file says nothing about it
		".git/wt/a.go": {work + "/.git/wt"}, ".hg/wt/a.go": {work + "/.hg/wt"}, "b/.GIT/x/a.go": {work + "/b/.GIT/x", work},
	} {
		if len(patch.ProtectedOf([]string{filepath.Join(work, path)}, roots)) == 0 {
			t.Errorf("%s is not protected below %q", path, roots)
		}
	}
	if len(patch.ProtectedOf([]string{filepath.Join(work, "bare/main.go")}, []string{work})) > 0 {
		t.Error("bare/main.go is protected")
	}
}

// TestProtectedNewRepository checks that a bare repository is protected if a patch would create or complete it.
func TestProtectedNewRepository(t *testing.T) {
	for text, want := range map[string]bool{
		"*** Add File: r/config\n+x\n*** Add File: r/HEAD\n+x\n*** Add File: r/objects/x\n+x\n*** Add File: r/refs/x\n+x": true,
		"*** Add File: r/HEAD\n+x\n*** Add File: r/commondir\n+x":                                                         true,
		"*** Add File: r/config\n+x\n*** Add File: r/HEAD\n+x\n*** Add File: r/objects/x\n+x":                             false,
		"*** Add File: r/HEAD\n+x": false,
	} {
		dir := t.TempDir()
		must.Equal(t, fmt.Sprintf("%q is protected", text), want, len(plan(t, dir, text).Protected([]string{dir})) > 0)
	}
}

// TestLinkThroughLink checks that links are resolved as the system does it: the part of a
// target before .. may be a link itself.
func TestLinkThroughLink(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	writeTree(t, dir, map[string]string{"work/x": "x\n", "out/deep/x": "x\n", "out/secret": "s\n", "work/secret": "w\n"})
	work := filepath.Join(dir, "work")
	for name, to := range map[string]string{"deep": "../out/deep", "link": "deep/../secret"} {
		must.OK(t, os.Symlink(to, filepath.Join(work, name)))
	}
	p := plan(t, work, "*** Update File: link\n@@\n-s\n+t")
	if p.Within([]string{work}) {
		t.Error("the patch lies within the folder")
	}
	must.Equal(t, "the link", filepath.Join(work, "link"), p.Links()[filepath.Join(dir, "out/secret")])
	must.OK(t, p.Apply())
	check(t, filepath.Join(dir, "out/secret"), "t\n")
}
