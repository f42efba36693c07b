package patch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
)

func FuzzParse(f *testing.F) {
	for _, r := range readRows(f) {
		f.Add(r.Patch)
	}
	dir := f.TempDir()
	writeTree(f, dir, map[string]string{"a.txt": "one\ntwo\n\nthree\n"})
	f.Fuzz(func(t *testing.T, text string) {
		patch.Recognize([]string{"bash", "-lc", text})
		p, err := patch.Parse(text)
		if err != nil {
			return
		}
		plan, err := p.Plan(patch.Folder{Path: dir}, dir) // only reads
		if err != nil {
			return
		}
		plan.Summary()
		plan.Within([]string{dir})
		for path, change := range plan.Changes() {
			if !strings.HasPrefix(path, "/") {
				t.Errorf("the path %q is not absolute", path)
			}
			if change.Add != nil && !utf8.ValidString(change.Add.Content) && utf8.ValidString(text) {
				t.Errorf("%s: the content is not UTF-8", path)
			}
		}
	})
}

// FuzzThereAndBack turns one text into another by a patch, and back by its
// reverse.
func FuzzThereAndBack(f *testing.F) {
	f.Add("one\ntwo\nthree\n", "one\n2\nthree\n")
	f.Add("", "x\n")
	f.Add("x\n\n\n", "\n\nx\n")
	f.Add("@@\n*** End Patch\n+x\n", "-\n \n*** End of File\n")
	f.Add("a\nb\na\nb\n", "b\na\nb\na\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		before, after = text(before), text(after)
		if before == after {
			return // the patch would be empty
		}
		path := filepath.Join(t.TempDir(), "a.txt")
		if err := os.WriteFile(path, []byte(before), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, texts := range [][2]string{{before, after}, {after, before}} {
			if err := plan(t, filepath.Dir(path), change(texts[0], texts[1])).Apply(); err != nil {
				t.Fatal(err)
			}
			check(t, path, texts[1])
		}
	})
}

// text returns s as the content of a text file.
func text(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\r", "")
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s
}

// change returns an update with all lines of the file.
func change(before, after string) string {
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	a, b = a[:len(a)-1], b[:len(b)-1]
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	var out strings.Builder
	out.WriteString("*** Update File: a.txt\n@@\n")
	for _, part := range []struct {
		sign  string
		lines []string
	}{{" ", a[:n]}, {"-", a[n:]}, {"+", b[n:]}} {
		for _, line := range part.lines {
			out.WriteString(part.sign + line)
		}
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func check(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Fatalf("%q, %v; want %q", got, err, want)
	}
}
