//go:build unix

package repo

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// gitIn runs git in a folder.
func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestIndex compares the index that is read here with the one that git prints.
func TestIndex(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change []string // of the index, by git
		init   []string
	}{
		{name: "none"},
		{name: "version 2", change: []string{"add", "."}},
		{name: "version 4", change: []string{"update-index", "--index-version=4", "--add", "a", "b/c", "b-d"}},
		{name: "two parts", change: []string{"update-index", "--split-index", "--add", "a", "b/c", "b-d"}},
		{name: "marks", change: []string{"update-index", "--add", "a", "b/c", "--assume-unchanged", "a", "--skip-worktree", "b/c"}},
		{name: "to be added", change: []string{"add", "-N", "."}},
		{name: "sha256", change: []string{"add", "."}, init: []string{"--object-format=sha256"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			gitIn(t, dir, append([]string{"init", "-q"}, tt.init...)...)
			for _, name := range []string{"a", "b/c", "b-d", "b/" + strings.Repeat("long", 1100) + "/e"} {
				path := filepath.Join(dir, name)
				if len(name) > 1000 { // longer than the length that an index can have
					path = filepath.Join(dir, "b", strings.Repeat(strings.Repeat("l", 200)+"/", 18), "e")
				}
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tt.change != nil {
				gitIn(t, dir, tt.change...)
			}
			p, err := folderWithIndex(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			x, err := p.index(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, e := range x {
				tag := "H"
				if e.skipped {
					tag = "S"
				}
				if e.assumed {
					tag = strings.ToLower(tag)
				}
				fmt.Fprintf(&got, "%s %06o %s\n", tag, e.mode, e.name)
				info, err := os.Lstat(filepath.Join(dir, e.name))
				if err != nil || tt.name != "to be added" && int64(e.changed) != changeTime(info).Unix() {
					t.Errorf("%s changed at %d, %v", e.name, e.changed, err)
				}
			}
			if d := cmp.Diff(listed(t, dir), got.String()); d != "" {
				t.Errorf("(-git +got):\n%s", d)
			}
		})
	}
}

// listed returns the files of an index as git prints them.
func listed(t *testing.T, dir string) string {
	var b strings.Builder
	for entry := range strings.SplitSeq(gitIn(t, dir, "ls-files", "-z", "-v", "--stage"), "\x00") {
		if entry == "" {
			continue
		}
		stage, name, _ := strings.Cut(entry, "\t")
		words := strings.Fields(stage)
		fmt.Fprintf(&b, "%s %s %s\n", words[0], words[1], name)
	}
	return b.String()
}

// FuzzIndex reads an index that an attacker has written.
func FuzzIndex(f *testing.F) {
	dir := f.TempDir()
	MakeRepo(f, dir)
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			f.Fatal(err)
		}
	}
	for _, args := range [][]string{{"add", "a"}, {"add", "."}, {"update-index", "--skip-worktree", "a"}, {"update-index", "--split-index"}} {
		gitIn(f, dir, args...)
		data, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, data string) {
		x, ok := parseIndex(data, 20)
		if !ok {
			return
		}
		cachedTree(data, x)
		if !slices.IsSortedFunc(x, func(a, b indexed) int { return strings.Compare(a.name, b.name) }) {
			t.Error("it is not sorted")
		}
		for i := range x {
			if e := x.entry(x[i].name); e == nil || e.name != x[i].name {
				t.Errorf("%q is not found", x[i].name)
			}
		}
	})
}

// TestSee compares what is new in random folders with what git finds if it looks at all
// folders.
func TestSee(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			MakeRepo(t, dir)
			r := rand.New(rand.NewPCG(seed, 0))
			parts := []string{"a", "b", "a-b", "A", "x.o", "out"}
			random := func() string {
				var name strings.Builder
				name.WriteString(parts[r.IntN(len(parts))])
				for r.IntN(2) == 0 {
					name.WriteString("/" + parts[r.IntN(len(parts))])
				}
				return filepath.Join(dir, name.String())
			}
			lay := func(kinds int) {
				path := random()
				switch r.IntN(kinds) {
				default:
					_ = os.MkdirAll(filepath.Dir(path), 0o700) // some names are taken
					_ = os.WriteFile(path, []byte(path), 0o600)
				case 1:
					_ = os.Symlink("a", path)
				case 2:
					_ = os.RemoveAll(path)
				case 3:
					_ = os.MkdirAll(path, 0o700)
				case 4:
					_ = syscall.Mkfifo(path, 0o600)
				case 5:
					if os.Mkdir(path, 0o700) == nil && r.IntN(3) == 0 {
						MakeRepo(t, path)
					}
				}
			}
			for range 12 {
				lay(2)
			}
			if seed%3 > 0 {
				if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*.o\nout\n/a/b\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			gitIn(t, dir, "add", "--force", ".")
			for range seed % 7 {
				lay([]int{1, 6}[seed%2])
			}
			p, err := folderWithIndex(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			s := &Snapshot{root: dir, scratch: p.scratch, private: p}
			x, err := p.index(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			found := content{nested: map[string]bool{}, modules: map[string]bool{}}
			others, err := s.see(t.Context(), x, &found)
			if err != nil {
				t.Fatal(err)
			}
			for name := range found.nested {
				others = append(others, name+"/")
			}
			list := func(options ...string) []string {
				out, err := p.git(t.Context(), call{}, append([]string{"ls-files", "-z", "--others", "--exclude-standard"}, options...)...)
				if err != nil {
					t.Fatal(err)
				}
				return slices.Compact(slices.Sorted(strings.FieldsFuncSeq(out, func(r rune) bool { return r == 0 })))
			}
			slices.Sort(others)
			if d := cmp.Diff(list(), others, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("others (-git +got):\n%s", d)
			}
			slices.Sort(found.seen.ignored)
			ignored := list("--ignored", "--directory")
			if d := cmp.Diff(ignored, found.seen.ignored, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("ignored (-git +got):\n%s", d)
			}
			skip := maps.Clone(found.nested)
			for _, name := range ignored {
				skip[strings.TrimSuffix(name, "/")] = true
			}
			all := oddities{special: map[string]os.FileMode{}, closed: map[string]bool{}}
			if err := s.walk(t.Context(), "", skip, &all); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(all.special, found.seen.special); d != "" {
				t.Errorf("special files (-all +got):\n%s", d)
			}
			if d := cmp.Diff(all.closed, found.seen.closed); d != "" {
				t.Errorf("closed folders (-all +got):\n%s", d)
			}
		})
	}
}

// folderWithIndex returns a private git folder as a snapshot has it.
func folderWithIndex(t *testing.T, dir string) (*private, error) {
	scratch := Scratch{Dir: t.TempDir()}
	r, err := scratch.open(t.Context(), dir)
	if err != nil {
		return nil, err
	}
	p, err := scratch.reserve(r)
	if err != nil {
		return nil, err
	}
	return p, errors.Join(p.prepare(t.Context()), copyIndex(p.dir, p.gitDir))
}
