package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func names(diff string) string {
	var all []string
	for line := range strings.Lines(diff) {
		if rest, ok := strings.CutPrefix(line, "diff --git a/"); ok {
			name, _, _ := strings.Cut(rest, " b/")
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

func TestChangesOf(t *testing.T) {
	r := newRepo(t)
	check := func(what string, target protocol.ReviewTarget, revision, want string) *git.Changes {
		t.Helper()
		c, err := r.review(target, revision)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := names(c.Diff); got != want || c.Cut || c.Root != r.dir {
			t.Errorf("%s: %q, want %q; %+v", what, got, want, c)
		}
		return c
	}
	r.write("a", "one\n")
	check("no commit yet", protocol.ReviewUncommitted, "", "a")
	first := r.commit("first")
	check("the first commit", protocol.ReviewCommit, first, "a")
	check("nothing", protocol.ReviewUncommitted, "", "")
	r.git("switch", "-q", "-c", "work")
	r.write("b", "two\n")
	r.commit("second")
	r.write("a", "staged\n")
	r.git("add", "a")
	r.write("b", "changed\n")
	r.write("sub/new", "new\n")
	r.write("bin", "x\x00")
	r.write(".git/info/exclude", "ignored\n")
	r.write("ignored", "x")
	c := check("not committed", protocol.ReviewUncommitted, "", "a b bin sub/new")
	if !strings.Contains(c.Diff, "Binary files") || strings.Contains(c.Diff, "GIT binary patch") || c.Commit != "" {
		t.Errorf("%+v", c)
	}
	if c = check("since main", protocol.ReviewBase, "main", "a b"); c.Commit != first {
		t.Errorf("%+v", c)
	}
	r.git("tag", "v1", "main")
	check("since a tag", protocol.ReviewBase, "v1", "a b")
	check("the last one", protocol.ReviewCommit, "HEAD", "b")
	check("the one before", protocol.ReviewCommit, "work~1", "a")
	r.git("checkout", "-q", "-f", "main")
	r.write("a", "other\n")
	r.commit("elsewhere")
	r.git("checkout", "-q", "-f", "work")
	check("main went on", protocol.ReviewBase, "main", "b")

	r.git("checkout", "-q", "--orphan", "alone")
	r.commit("alone")
	var wrong *git.RevisionError
	for _, revision := range []string{"", "-", "--output=x", "-Sx", "nope", "main^{tree}", "main:a", "main..work", "main\x00", "a b\n"} {
		for _, target := range []protocol.ReviewTarget{protocol.ReviewBase, protocol.ReviewCommit} {
			if _, err := r.review(target, revision); !errors.As(err, &wrong) {
				t.Errorf("%s %q: %v", target, revision, err)
			}
		}
	}
	if _, err := r.review(protocol.ReviewBase, "main"); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "no commit in common") {
		t.Errorf("nothing in common: %v", err)
	}
	if _, err := git.Review(t.Context(), t.TempDir(), scratch(t), protocol.ReviewUncommitted, "", nil); err == nil || !strings.Contains(err.Error(), "not in a git repository") {
		t.Errorf("no repository: %v", err)
	}
}

// TestReviewOfOtherForms reviews repositories of other forms.
func TestReviewOfOtherForms(t *testing.T) {
	for name, lay := range map[string]func(r *fixture){
		"SHA-256": func(r *fixture) { r.shell("rm -r .git; git init -qb main --object-format=sha256") },
		"a name that needs quotes": func(r *fixture) {
			odd := filepath.Join(filepath.Dir(r.dir), "#\"o\nd\\d:ü")
			must.OK(t, os.Rename(r.dir, odd))
			r.dir = odd
		},
	} {
		r := newRepo(t)
		lay(r)
		for _, tt := range []struct{ text, want string }{{"one\n", "+one\n"}, {"two\n", "-one\n+two\n"}} {
			r.write("a.txt", tt.text)
			if c, err := r.review(protocol.ReviewUncommitted, ""); err != nil || !strings.Contains(c.Diff, tt.want) {
				t.Errorf("%s: %+v, %v", name, c, err)
			}
			r.commit(tt.text)
		}
	}
}

// TestChangesThatAreTooLong checks that a long diff is cut.
func TestChangesThatAreTooLong(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("big", "x\n")
	r.commit("first")
	r.write("big", strings.Repeat("0123456789abcde\n", 17<<16))
	r.write("new", "x\n")
	c, err := r.review(protocol.ReviewUncommitted, "")
	if err != nil || !c.Cut || len(c.Diff) > 17<<20 || names(c.Diff) != "big" {
		t.Errorf("%v, %d bytes, %s", err, len(c.Diff), names(c.Diff))
	}
}
