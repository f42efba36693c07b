package git_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/google/go-cmp/cmp"
)

func TestSnapshotDiff(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\ntwo\n")
	r.write("b.bin", "\x00\x01")
	r.write("moved.txt", strings.Repeat("same\n", 20))
	r.write(".gitattributes", "a.txt diff=evil\n*.gz filter=evil\n")
	r.configure(setting{"diff.evil.textconv", "touch " + r.dir + "/ran; cat"})
	r.commit("more")
	s, other := take(t, r.dir), take(t, r.dir)
	r.write("a.txt", "one\n\xff\n")
	r.write("b.bin", "\x00\x02")
	r.write("é.txt", "n\n")
	r.git("mv", "moved.txt", "there.txt")
	all, got, err := s.Compare(t.Context(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	left := func(list []git.Change) (n int) {
		for _, c := range list {
			if c.Why != "" {
				n++
			}
		}
		return n
	}
	var lines []string
	data := false // of a binary patch, as zlib has compressed it
	for line := range strings.Lines(got) {
		if !data && !strings.HasPrefix(line, "index ") {
			lines = append(lines, line)
		}
		data = strings.HasPrefix(line, "literal ")
	}
	want := `diff --git a/a.txt b/a.txt
GIT binary patch
literal 6

literal 8

diff --git a/b.bin b/b.bin
GIT binary patch
literal 2

literal 2

diff --git a/moved.txt b/there.txt
similarity index 100%
rename from moved.txt
rename to there.txt
diff --git "a/\303\251.txt" "b/\303\251.txt"
new file mode 100644
--- /dev/null
+++ "b/\303\251.txt"
@@ -0,0 +1 @@
+n
`
	if d := cmp.Diff(want, strings.Join(lines, "")); d != "" || left(all) > 0 {
		t.Errorf("%v, (-want +got)\n%s", all, d)
	}
	all, short, err := other.Compare(t.Context(), 250)
	if err != nil || short == "" || !strings.Contains(got, short) || left(all)+strings.Count(short, "diff --git ") != 4 {
		t.Errorf("short: %q, %v, %v", short, all, err)
	}
}
