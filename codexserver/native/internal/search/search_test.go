package search_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/search"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

func tree(t testing.TB, files ...string) string {
	t.Helper()
	root := t.TempDir()
	boxtest.Lay(t, root, files...)
	return root
}

func paths(files []protocol.FuzzyFile) []string {
	got := []string{}
	for _, f := range files {
		got = append(got, f.Path)
	}
	return got
}

// TestMatches has queries, and the files that they find with the matched characters, the best first.
func TestMatches(t *testing.T) {
	few := tree(t, "abc", "abcde", "abexy", "zzz.txt", "dir/abe.go")
	code := tree(t, "src/FooBar.go", "src/foo_bar.go", "lib/foo/bar.go", "README.md", "a b c.txt", ".hidden", "café.txt", "x/日本語.txt")
	type file struct {
		Path    string
		Indices []uint32
	}
	for _, tt := range []struct {
		root, query string
		want        []file
	}{
		{few, "abe", []file{{"abexy", []uint32{0, 1, 2}}, {"dir/abe.go", []uint32{4, 5, 6}}, {"abcde", []uint32{0, 1, 4}}}},
		{few, "zzz", []file{{"zzz.txt", []uint32{0, 1, 2}}}},
		{few, "", []file{}},
		{few, "xyzzy", []file{}},
		{few, strings.Repeat("a", 5000), []file{}},
		{few, strings.Repeat("a", 1<<20), []file{}},
		{few, " ", []file{{"abc", []uint32{}}, {"abcde", []uint32{}}, {"abexy", []uint32{}}, {"dir/abe.go", []uint32{}}, {"zzz.txt", []uint32{}}}},
		{code, "readme", []file{{"README.md", []uint32{0, 1, 2, 3, 4, 5}}}},
		{code, "md read", []file{{"README.md", []uint32{0, 1, 2, 3, 7, 8}}}},
		{code, "abc", []file{{"a b c.txt", []uint32{0, 2, 4}}}},
		{code, "hidden", []file{{".hidden", []uint32{1, 2, 3, 4, 5, 6}}}},
		{code, "café", []file{{"café.txt", []uint32{0, 1, 2, 3}}}},
		{code, "日本", []file{{"x/日本語.txt", []uint32{2, 3}}}},
		{code, "^src", []file{}},
		{code, "barbar", []file{}},
	} {
		got := []file{}
		last := uint32(math.MaxUint32)
		for _, f := range search.Files(t.Context(), tt.query, []string{tt.root}) {
			if f.Root != tt.root || f.FileName != f.Path[strings.LastIndex(f.Path, "/")+1:] || f.Score > last {
				t.Errorf("%q: %+v", tt.query, f)
			}
			last = f.Score
			got = append(got, file{f.Path, f.Indices})
		}
		must.Equal(t, fmt.Sprintf("%q", tt.query), tt.want, got)
	}
	if got := paths(search.Files(t.Context(), "foobar", []string{code})); len(got) != 3 {
		t.Errorf("foobar: %q", got)
	}
}

func TestRoots(t *testing.T) {
	root := tree(t, "a.txt", "sub/b.txt")
	sub := filepath.Join(root, "sub")
	for _, tt := range []struct {
		name        string
		roots, want []string
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
		must.Equal(t, tt.name, tt.want, paths(search.Files(t.Context(), "txt", tt.roots)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := search.Files(ctx, "txt", []string{root}); got == nil || len(got) > 0 {
		t.Errorf("a search that was cancelled before it began found %v", got)
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
	must.Equal(t, "result", append(f[:50:50], g[:50]...), got)
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
		{"*.{go,ts}", "a/b.ts", true}, {"{a,b}/*", "b/c", true}, {"{a,b}/*", "c/c", false},
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
		{"a byte-order mark", []string{"a.txt", "ig.txt", ".gitignore=\uFEFFig.txt\n"}, "", []string{"a.txt"}},
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
		must.Equal(t, tt.name, tt.want, got)
	}
}
