package search_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/search"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// tree makes a folder of files; a name that ends with a slash is a folder.
func tree(t testing.TB, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, f := range files {
		name, text, _ := strings.Cut(f, "=")
		path := filepath.Join(root, filepath.FromSlash(name))
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir == path {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func paths(files []protocol.FuzzyFile) []string {
	got := []string{}
	for _, f := range files {
		got = append(got, f.Path)
	}
	return got
}

// TestScores has the recorded answers of Codex 0.44, and some more.
func TestScores(t *testing.T) {
	recorded := tree(t, "abc", "abcde", "abexy", "zzz.txt", "dir/abe.go")
	code := tree(t, "src/FooBar.go", "src/foobar.go", "src/foo_bar.go", "lib/foo/bar.go", "README.md", "a b c.txt", ".hidden",
		"café.txt", "cafe.txt", "deep/er/st/file1.txt", "Über.txt", "x/日本語.txt")
	type file struct {
		Path    string
		Score   uint32
		Indices []uint32
	}
	for _, tt := range []struct {
		root, query string
		want        []file
	}{
		{recorded, "abe", []file{{"abexy", 88, []uint32{0, 1, 2}}, {"dir/abe.go", 84, []uint32{4, 5, 6}}, {"abcde", 74, []uint32{0, 1, 4}}}},
		{recorded, "zzz", []file{{"zzz.txt", 88, []uint32{0, 1, 2}}}},
		{recorded, "", []file{}},
		{recorded, "xyzzy", []file{}},
		{recorded, strings.Repeat("a", 5000), []file{}},
		{recorded, strings.Repeat("a", 1<<20), []file{}},
		{recorded, " ", []file{{"abc", 0, []uint32{}}, {"abcde", 0, []uint32{}}, {"abexy", 0, []uint32{}}, {"dir/abe.go", 0, []uint32{}}, {"zzz.txt", 0, []uint32{}}}},
		{code, "foobar", []file{
			{"src/FooBar.go", 159, []uint32{4, 5, 6, 7, 8, 9}}, {"src/foobar.go", 159, []uint32{4, 5, 6, 7, 8, 9}},
			{"lib/foo/bar.go", 156, []uint32{4, 5, 6, 8, 9, 10}}, {"src/foo_bar.go", 153, []uint32{4, 5, 6, 8, 9, 10}},
		}},
		{code, "FooBar", []file{{"src/FooBar.go", 159, []uint32{4, 5, 6, 7, 8, 9}}}},
		{code, "FOO", []file{}},
		{code, "bar  foo", []file{
			{"lib/foo/bar.go", 168, []uint32{4, 5, 6, 8, 9, 10}}, {"src/foo_bar.go", 164, []uint32{4, 5, 6, 8, 9, 10}},
			{"src/FooBar.go", 152, []uint32{4, 5, 6, 7, 8, 9}}, {"src/foobar.go", 140, []uint32{4, 5, 6, 7, 8, 9}},
		}},
		{code, "fb", []file{{"lib/foo/bar.go", 54, []uint32{4, 8}}, {"src/foo_bar.go", 53, []uint32{4, 8}}, {"src/FooBar.go", 51, []uint32{4, 7}}, {"src/foobar.go", 46, []uint32{4, 7}}}},
		{code, "abc", []file{{"a b c.txt", 82, []uint32{0, 2, 4}}}},
		{code, `b\ c`, []file{{"a b c.txt", 114, []uint32{2, 3, 4, 5}[:3]}}},
		{code, "hidden", []file{{".hidden", 152, []uint32{1, 2, 3, 4, 5, 6}}}},
		{code, "cafe", []file{{"cafe.txt", 114, []uint32{0, 1, 2, 3}}, {"café.txt", 114, []uint32{0, 1, 2, 3}}}},
		{code, "café", []file{{"café.txt", 114, []uint32{0, 1, 2, 3}}}},
		{code, "uber", []file{{"Über.txt", 114, []uint32{0, 1, 2, 3}}}},
		{code, "日本", []file{{"x/日本語.txt", 59, []uint32{2, 3}}}},
		{code, "f1", []file{{"deep/er/st/file1.txt", 50, []uint32{11, 15}}}},
		{code, "s/f", []file{
			{"src/FooBar.go", 73, []uint32{0, 3, 4}}, {"src/foo_bar.go", 73, []uint32{0, 3, 4}}, {"src/foobar.go", 73, []uint32{0, 3, 4}},
			{"deep/er/st/file1.txt", 72, []uint32{8, 10, 11}},
		}},
		{code, "^src", []file{}},
		{code, "barbar", []file{}},
	} {
		got := []file{}
		for _, f := range search.Files(t.Context(), tt.query, []string{tt.root}) {
			if f.Root != tt.root || f.FileName != f.Path[strings.LastIndex(f.Path, "/")+1:] {
				t.Errorf("%q: %+v", tt.query, f)
			}
			got = append(got, file{f.Path, f.Score, f.Indices})
		}
		if tt.query == `b\ c` { // its score is ours alone
			for i := range got {
				got[i].Score = 114
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got)\n%s", tt.query, diff)
		}
	}
}

func TestRoots(t *testing.T) {
	root := tree(t, "a.txt", "sub/b.txt")
	sub := filepath.Join(root, "sub")
	for _, tt := range []struct {
		name  string
		roots []string
		want  []string
	}{
		{"none", []string{}, []string{}},
		{"nil", nil, []string{}},
		{"one", []string{root}, []string{"a.txt", "sub/b.txt"}},
		{"with a slash", []string{root + string(filepath.Separator)}, []string{"a.txt", "sub/b.txt"}},
		{"twice", []string{root, root}, []string{"a.txt", "a.txt", "sub/b.txt", "sub/b.txt"}},
		{"one in the other", []string{root, sub}, []string{"a.txt", "b.txt", "sub/b.txt"}},
		{"not there", []string{filepath.Join(root, "no"), sub}, []string{"b.txt"}},
		{"a file", []string{filepath.Join(root, "a.txt")}, []string{}},
		{"relative", []string{".", ""}, []string{}},
	} {
		if diff := cmp.Diff(tt.want, paths(search.Files(t.Context(), "txt", tt.roots))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

func TestLimit(t *testing.T) {
	many := func(letter string) []string {
		var names []string
		for i := range 120 {
			names = append(names, fmt.Sprintf("%s%03d.txt", letter, i))
		}
		return names
	}
	f, g := many("f"), many("g")
	got := paths(search.Files(t.Context(), "txt", []string{tree(t, g...), tree(t, f...)}))
	if diff := cmp.Diff(append(f[:50:50], g[:50]...), got); diff != "" {
		t.Error("(-want +got)\n" + diff)
	}
}

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, file string
		want          bool
	}{
		{"*.go", "a/b.go", true}, {"*.go", "a.go/b", false}, {"./*.go", "a/b.go", true}, {"a/*.go", "a/b.go", true}, {"a/*.go", "x/a/b.go", false},
		{"a/b", "a", false}, {"a/b", "a/b/c", false}, {"**/b", "b", true}, {"**/b", "x/y/b", true}, {"**/a/b", "a/a/b", true}, {"**/a/b", "a/b/a", false},
		{"a/**", "a", false}, {"a/**", "a/b/c", true}, {"a/**/b/c", "a/b/c", true}, {"a/**/b/c", "a/b/b/c", true}, {"a/**/b/c", "a/b/x/c", false},
		{"a/**/b/**/c", "a/x/b/y/c", true}, {"a/**/**/b", "a/b", true}, {"a/**/b", "x/a/b", false}, {"**/a/**", "x/a", false},
	} {
		match, err := search.Glob(tt.pattern)
		if err != nil || match(tt.file) != tt.want {
			t.Errorf("%s, %s: %v, want %t", tt.pattern, tt.file, err, tt.want)
		}
	}
	for _, pattern := range []string{"[", "a/[b/c"} {
		if _, err := search.Glob(pattern); err == nil {
			t.Errorf("%s is a pattern", pattern)
		}
	}
}

func TestCancelled(t *testing.T) {
	root := tree(t, "a.txt", "sub/b.txt")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := search.Files(ctx, "txt", []string{root}); got == nil || len(got) > 0 {
		t.Errorf("a search that was cancelled before it began found %v", got)
	}
}

func TestIgnored(t *testing.T) {
	repository := []string{".git/HEAD=ref: refs/heads/main", ".git/objects/", ".git/refs/"}
	for _, tt := range []struct {
		name  string
		files []string
		sub   string
		want  []string
	}{
		{"no repository", []string{"a.txt", "ig.txt", ".gitignore=ig.txt\n"}, "", []string{"a.txt"}},
		{"the ignore file", []string{"a.txt", "ig.txt", ".ignore=ig.txt\n", ".gitignore=!ig.txt"}, "", []string{"a.txt"}},
		{"nested", []string{"a.log.txt", "sub/a.log.txt", "sub/keep.log.txt", ".gitignore=*.log.txt\n", "sub/.gitignore=!keep.*"}, "", []string{"sub/keep.log.txt"}},
		{"a folder", []string{"build/x.txt", "sub/build/x.txt", "b.txt", ".gitignore=build/"}, "", []string{"b.txt"}},
		{"above the root", append(repository, ".gitignore=ig.txt\n/sub/no.txt\n", "sub/ig.txt", "sub/no.txt", "sub/a.txt"), "sub", []string{"a.txt"}},
		{"several folders above the root", append(repository, ".gitignore=/sub/a/no.txt\n", "sub/.gitignore=/a/ig.txt\n", "sub/a/no.txt", "sub/a/ig.txt", "sub/a/ok.txt"), "sub/a", []string{"ok.txt"}},
		{"an empty .git above the root", []string{".git/", ".gitignore=a.txt\n", "sub/a.txt"}, "sub", []string{"a.txt"}},
		{"git's own files", []string{".git/config.txt", "sub/.git=gitdir.txt", "sub/a.txt"}, "", []string{"sub/a.txt"}},
		{"exclude", append(repository, ".git/info/exclude=ig.txt", "ig.txt", "a.txt"), "", []string{"a.txt"}},
		{"the root itself", append(repository, ".gitignore=sub/\n", "sub/a.txt"), "sub", []string{"a.txt"}},
	} {
		root := tree(t, tt.files...)
		got := paths(search.Files(t.Context(), "txt", []string{filepath.Join(root, tt.sub)}))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

// TestIgnoredAsByGit compares the files with those that git lists, for many .gitignore files.
func TestIgnoredAsByGit(t *testing.T) {
	files := []string{"a", "b.txt", "c.log", "d/a", "d/b.txt", "d/e/a", "d/e/c.log", "d/e/f/b.txt", "x y", "#h", "!i", "[z]", "d/a b/a", "e/d/a", "g*h/a", `back\slash`}
	parts := []string{"a", "b.txt", "*.txt", "*", "?", "d", "e", "f", "**", "[a-d]", "[!a]", "[^b]*", "d*", "c.log", `\#h`, `\!i`, `\[z]`, "x y", `x\ y`, "a b", `g\*h`, "**a", "a**"}
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func() string { return parts[rng.IntN(len(parts))] }
	root := tree(t, append(files, "d/.gitignore=!b.txt\n/a\n", ".gitignore=")...)
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "core.excludesFile="}, args...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	git("init", "-q")
	for range 60 {
		var lines strings.Builder
		for range 1 + rng.IntN(4) {
			if rng.IntN(3) == 0 {
				lines.WriteByte('!')
			}
			if rng.IntN(3) == 0 {
				lines.WriteByte('/')
			}
			lines.WriteString(pick())
			for rng.IntN(2) == 0 {
				lines.WriteString("/" + pick())
			}
			lines.WriteString([]string{"", "", "/", " ", "  ", "\r"}[rng.IntN(6)] + "\n")
		}
		if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimRight(git("ls-files", "-o", "--exclude-standard", "-z"), "\x00"), "\x00")
		slices.Sort(want)
		if want[0] == "" {
			want = []string{}
		}
		got := paths(search.Files(t.Context(), " ", []string{root}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-git +got)\n%s", lines.String(), diff)
		}
	}
}

func BenchmarkFiles(b *testing.B) {
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf("dir%02d/sub%d/file_name%04d.go", i%40, i%7, i))
	}
	root := tree(b, names...)
	for b.Loop() {
		search.Files(b.Context(), "dirname12", []string{root})
	}
}
