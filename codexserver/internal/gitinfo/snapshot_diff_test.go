package gitinfo_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSnapshotDiff(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\ntwo\n")
	r.write("b.bin", "\x00\x01")
	r.write("moved.txt", strings.Repeat("same\n", 20))
	r.write(".gitattributes", "a.txt diff=evil\n*.txt filter=evil\n")
	r.git("config", "diff.evil.textconv", "touch "+r.dir+"/ran; cat")
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "more")
	s := take(t, r.dir)
	if got, err := s.Diff(t.Context(), 1000); err != nil || got != "" {
		t.Errorf("before anything was compared: %q, %v", got, err)
	}
	r.write("a.txt", "one\n\xff\n")
	r.write("b.bin", "\x00\x02")
	r.write("é.txt", "n\n")
	r.git("mv", "moved.txt", "there.txt")
	changes(t, s)
	got, err := s.Diff(t.Context(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(got) {
		if !strings.HasPrefix(line, "index ") {
			lines = append(lines, line)
		}
	}
	want := `diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
 one
-two
+�
diff --git a/b.bin b/b.bin
Binary files a/b.bin and b/b.bin differ
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
	if d := cmp.Diff(want, strings.Join(lines, "")); d != "" {
		t.Error("(-want +got)\n" + d)
	}
	if short, err := s.Diff(t.Context(), 100); err != nil || short != got[:100] {
		t.Errorf("cut: %q, %v", short, err)
	}
}
