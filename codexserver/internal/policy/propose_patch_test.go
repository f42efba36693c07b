package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestPatchRules accepts the rule for a patch of src/lib/a.go, and asks about other patches. A
// naive rule compares the beginning of the path.
func TestPatchRules(t *testing.T) {
	dir := repository(t)
	for _, err := range []error{
		write(filepath.Join(dir, "src", "lib", "a.go"), "package lib\n"), write(filepath.Join(dir, "src", "folder.go", "x.go"), ""), write(filepath.Join(dir, "src", "inner", ".git", "HEAD"), ""),
		os.WriteFile(filepath.Join(dir, "src", "tool.py"), nil, 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ask := func(change func(q *protocol.PatchApprovalRequest), files ...string) *protocol.PatchApprovalRequest {
		q := &protocol.PatchApprovalRequest{Cwd: dir, Placed: true, Changes: map[string]protocol.FileChange{}}
		for _, file := range files {
			q.Changes[filepath.Join(dir, "src")+file] = protocol.FileChange{Add: &protocol.FileContent{}}
		}
		if change != nil {
			change(q)
		}
		return q
	}
	p, err := policy.ExplainPatch(ask(nil, "/lib/a.go", "/b.md"))
	if want := filepath.Join(dir, "src"); err != nil || p.Rule.Patches != want || p.Rule.Folder != dir || p.Confined {
		t.Fatalf("%+v, %v, want %s", p, err, want)
	}
	if q, err := policy.ExplainPatch(ask(nil, "/a/x.go", "/b/y.go")); err != nil || q.Rule.Patches != filepath.Join(dir, "src") {
		t.Errorf("two folders: %+v, %v", q, err)
	}
	if q, err := policy.ExplainPatch(ask(nil)); err == nil {
		t.Errorf("no file: %+v", q)
	}
	for _, tt := range []struct {
		name   string
		change func(q *protocol.PatchApprovalRequest)
		files  string
		want   bool
	}{
		{"the same", nil, "/lib/a.go", true},
		{"another file", nil, "/new/deep/x.ts /b.md", true},
		{"a longer name of the folder", nil, "-other/x.go", false},
		{"above", nil, "/../x.go", false},
		{"one elsewhere", nil, "/b.md /../../x.go", false},
		{"a dotfile", nil, "/.profile", false},
		{"a hidden folder", nil, "/.github/workflows/x.md", false},
		{"git", nil, "/.git/hooks/x.py", false},
		{"git in another case", nil, "/.GIT/x.md", false},
		{"git with an invisible character", nil, "/\u200c.git/x.md", false},
		{"git with a filler", nil, "/\u3164git/x.md", false},
		{"the short name of git", nil, "/GIT~1/x.md", false},
		{"a stream of a file", nil, "/x.go:y.go", false},
		{"a folder with a dot at its end", nil, "/x./y.go", false},
		{"hooks", nil, "/hooks/x.py", false},
		{"hooks in another case", nil, "/Hooks/x.py", false},
		{"CI", nil, "/ci/x.py", false},
		{"installed packages", nil, "/node_modules/x/x.js", false},
		{"a build file", nil, "/Makefile", false},
		{"a build script", nil, "/build.rs", false},
		{"a configuration that is code", nil, "/vite.config.ts", false},
		{"a configuration of tests", nil, "/conftest.py", false},
		{"a configuration", nil, "/package.json", false},
		{"a list of packages", nil, "/requirements-dev.txt", false},
		{"instructions for agents", nil, "/AGENTS.md", false},
		{"a script", nil, "/x.sh", false},
		{"a program", nil, "/tool.py", false},
		{"a folder", nil, "/inner", false},
		{"a folder with the name of a file", nil, "/folder.go", false},
		{"in a folder with the name of a file", nil, "/folder.go/x2.go", true},
		{"a file of makers", nil, "/makefile.md", false},
		{"a digit", nil, "/v2/x9.go", true},
		{"no file", nil, "", false},
		{"a folder that is not clean", func(q *protocol.PatchApprovalRequest) {
			q.Changes[dir+"/src//lib/b.go"] = protocol.FileChange{Add: &protocol.FileContent{}}
		}, "", false},
		{"a folder with a blank at its end", func(q *protocol.PatchApprovalRequest) {
			q.Changes[dir+"/src/x /b.go"] = protocol.FileChange{Add: &protocol.FileContent{}}
		}, "", false},
		{"a relative path", func(q *protocol.PatchApprovalRequest) {
			q.Changes["src/b.go"] = protocol.FileChange{Add: &protocol.FileContent{}}
		}, "", false},
		{"no change", func(q *protocol.PatchApprovalRequest) { q.Changes[dir+"/src/b.go"] = protocol.FileChange{} }, "", false},
		{"an update", func(q *protocol.PatchApprovalRequest) {
			q.Changes[dir+"/src/b.go"] = protocol.FileChange{Update: &protocol.FileUpdate{}}
		}, "", true},
		{"adding and deleting", func(q *protocol.PatchApprovalRequest) {
			q.Changes[dir+"/src/b.go"] = protocol.FileChange{Add: &protocol.FileContent{}, Delete: &protocol.FileContent{}}
		}, "", false},
		{"in no folder", func(q *protocol.PatchApprovalRequest) { q.Cwd = filepath.Join(dir, "missing") }, "/a.go", false},
		{"in a relative folder", func(q *protocol.PatchApprovalRequest) { q.Cwd = "." }, "/a.go", false},
		{"in a repository in it", nil, "/inner/x.go", false},
		{"deleting", func(q *protocol.PatchApprovalRequest) {
			q.Changes[filepath.Join(dir, "src", "b.md")] = protocol.FileChange{Delete: &protocol.FileContent{}}
		}, "/a.go", false},
		{"moving", func(q *protocol.PatchApprovalRequest) {
			q.Changes[filepath.Join(dir, "src", "b.md")] = protocol.FileChange{Update: &protocol.FileUpdate{MovePath: new(filepath.Join(dir, "Makefile"))}}
		}, "/a.go", false},
		{"through a link", func(q *protocol.PatchApprovalRequest) { q.Links = map[string]string{dir: "x"} }, "/a.go", false},
		{"a hard link", func(q *protocol.PatchApprovalRequest) { q.Notes = []string{"x"} }, "/a.go", false},
		{"an engine that does not apply it", func(q *protocol.PatchApprovalRequest) { q.Placed = false }, "/a.go", false},
		{"of another repository", func(q *protocol.PatchApprovalRequest) { q.Cwd = repository(t) }, "/a.go", false},
		{"of a repository in it", func(q *protocol.PatchApprovalRequest) { q.Cwd = filepath.Join(dir, "src", "inner") }, "/inner/a.go", false},
	} {
		q := ask(tt.change, strings.Fields(tt.files)...)
		if got := policy.PatchCovers([]policy.Rule{p.Rule}, q); got != tt.want {
			t.Errorf("%s: allowed %t, want %t", tt.name, got, tt.want)
		}
	}
	if policy.PatchCovers(nil, ask(nil, "/a.go")) {
		t.Error("no rule allows a patch")
	}
	narrow := p.Rule
	narrow.Patches = filepath.Join(dir, "src", "lib")
	if policy.PatchCovers([]policy.Rule{narrow}, ask(nil, "/b.md")) {
		t.Error("a rule for a folder allows the folder above")
	}
}
