package git_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// take takes a snapshot, which the test's end removes.
func take(t *testing.T, dir string) *git.Before {
	t.Helper()
	scratch := scratch(t)
	s := must.Get(git.Look(t.Context(), dir, &git.Options{Scratch: scratch}))(t)
	t.Cleanup(func() {
		if ran, _ := filepath.Glob(filepath.Join(scratch.Dir, "git-*", "git", "ran")); len(ran) > 0 {
			t.Error("a program of the repository ran in the sandbox")
		}
		must.Check(t, s.Remove())
		if left, _ := os.ReadDir(scratch.Dir); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
	return s
}

// changes returns the changes since a snapshot, one in each line.
func changes(t *testing.T, s *git.Before) string {
	t.Helper()
	list, diff, err := s.Compare(t.Context(), 1<<20)
	if err != nil || diff != "" && len(list) == 0 {
		t.Fatalf("%v\n%.1000s", err, diff)
	}
	var b strings.Builder
	for _, c := range list {
		b.WriteString(string(c.Kind) + " " + c.From + ">" + c.Path)
		if c.Lines != nil {
			b.WriteString(" " + strings.Repeat("+", c.Lines.Added) + strings.Repeat("-", c.Lines.Removed))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestChanged has changes of files that a look treats in a way of their own.
func TestChanged(t *testing.T) {
	rows := map[string]struct{ lay, act, want string }{
		"a large file that differed and stays":   {"truncate -s 20M large; git add large; echo x >> large", "echo x > a", "add >a +\n"},
		"a file that differed and is as indexed": {"echo 1 > x", "git checkout -q x", "update >x +-\n"},
		"a file that was not known and is gone":  {"echo n > n", "rm n", "delete >n -\n"},
		"a file that was not known and moves":    {"seq 9 > n", "mv n m", "rename n>m \n"},
		"a file that was gone and comes back":    {"rm x", "git checkout -q x", "add >x +\n"},
		"a file that was a folder":               {"rm x; mkdir x; echo y > x/y", "rm -r x; git checkout -q x", "add >x +\ndelete >x/y -\n"},
		"a folder that was a file":               {"mkdir d; echo d > d/d; git add d; rm -r d; echo f > d", "rm d; git checkout -q d", "delete >d -\nadd >d/d +\n"},
		"a link that differed":                   {"rm x; ln -s a x", "rm x; ln -s b x", "update >x +-\n"},
		"a program that differed":                {"chmod +x x; echo 1 > x", "echo 2 > x", "update >x +-\n"},
		"line ends of a file that differed": {"echo '* text=auto' > .gitattributes; git add .; printf '1\\r\\n2\\r\\n' > x", "printf '1\\r\\n3\\r\\n' > x",
			"update >x +-\n"},
		"line ends by attributes that differed": {"echo '* text' > .gitattributes; printf '1\\r\\n2\\r\\n' > x", "printf '1\\r\\n3\\r\\n' > x",
			"update >x +-\n"},
		"a name that git would not store": {"mkdir ./-git; echo c > ./-git/config; git add .; rm -r ./-git; sed -i 's#-git/config#.git/config#' .git/index",
			"echo 1 > x; git config a.b c", "update >x +-\n"},
		"a submodule where git has none": {"git init -q .git/m; git -C .git/m commit -q --allow-empty -m 1; " +
			"git update-index --add --cacheinfo 160000,$(git -C .git/m rev-parse HEAD),-git/m; sed -i 's#-git/m#.git/m#' .git/index",
			"echo 1 > x; git -C .git/m commit -q --allow-empty -m 2", "update >x +-\n"},
	}
	first := newRepo(t)
	first.write("x", "x\n")
	first.commit("first")
	copies := first.copies(t, len(rows))
	for name, tt := range rows {
		r := copies[0]
		copies = copies[1:]
		t.Run(name, func(t *testing.T) {
			r := r.in(t)
			r.shell(tt.lay)
			s := take(t, r.dir)
			r.shell(tt.act)
			must.Equal(t, "the changes", tt.want, changes(t, s))
		})
	}
}

// TestLookWritesNothing checks that a look and a comparison write nothing to the repository and the folder.
func TestLookWritesNothing(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\ntwo\n")
	r.commit("first")
	r.write("a.txt", "one\n")
	r.write("u", "u\n")
	s := take(t, r.dir)
	r.write("u", "v\n")
	before := stamps(t, r.dir)
	must.Equal(t, "the changes", "update >u +-\n", changes(t, s))
	must.Equal(t, "the repository", before, stamps(t, r.dir))
}

// stamps returns what shows that a file in a folder was written, without its content.
func stamps(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		found[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime())
		if strings.HasPrefix(path, filepath.Join(dir, ".git", "objects")) { // git renews the time of one that it would write again
			found[path] = fmt.Sprint(info.Mode(), info.Size())
		}
		return nil
	})
	must.OK(t, err)
	return found
}

// TestNoModes has a file system without modes, where git ignores them: none is in the diff.
func TestNoModes(t *testing.T) {
	r := newRepo(t)
	r.shell("git config core.fileMode false; chmod +x .git/config; echo a > a; echo b > b; git add .; git update-index --chmod=+x b; git commit -qm x; echo d > d; chmod +x a b d")
	s := take(t, r.dir)
	r.shell("for f in a b d n; do echo x >> $f; done; chmod -x b d; chmod +x n")
	_, diff, err := s.Compare(t.Context(), 1<<20)
	if err != nil || strings.Contains(diff, "mode 100755") || strings.Count(diff, "\n+x\n") != 4 {
		t.Errorf("%v\n%s", err, diff)
	}
}

// TestCompareWithUserSettings checks that the user's filters do not run, and that the user's ignore patterns count.
func TestCompareWithUserSettings(t *testing.T) {
	r := newRepo(t)
	trap, home := filepath.Join(r.dir, "../ran"), t.TempDir()
	ignored := filepath.Join(home, "ignored")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "0")
	t.Setenv("GIT_CONFIG_SYSTEM", filepath.Join(home, "config"))
	for file, text := range map[string]string{
		ignored:                        "*.tmp\n",
		os.Getenv("GIT_CONFIG_SYSTEM"): "[core]\n\texcludesFile = " + ignored + "\n[filter \"mine\"]\n\tclean = touch '" + trap + "'; false\n\trequired = true\n", // in a sandbox it cannot touch
	} {
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	}
	r.write(".gitattributes", "* filter=mine\n")
	s := take(t, r.dir)
	r.write("a", "a\n")
	r.write("x.tmp", "x\n")
	must.Equal(t, "the changes", "add >a +\n", changes(t, s))
	if _, err := os.Stat(trap); err == nil {
		t.Error("a filter was run")
	}
}

// TestIncludes reads the files that the user's configuration includes, also on conditions, and says that it does not read
// those of a repository's.
func TestIncludes(t *testing.T) {
	for name, tt := range map[string]struct {
		user, own string // what includes a file that ignores *.swp
		want      string // the changes and the gaps
	}{
		"no include":                     {"", "", "add >a +\nadd >b.swp +\n"},
		"of the user":                    {"[include]\n\tpath = more\n", "", "add >a +\n: git ignores b.swp\n"},
		"of the user, for this folder":   {"[includeIf \"gitdir:REPO/\"]\n\tpath = more\n", "", "add >a +\n: git ignores b.swp\n"},
		"of the user, for another one":   {"[includeIf \"gitdir:REPO/x/\"]\n\tpath = more\n", "", "add >a +\nadd >b.swp +\n"},
		"of the user, for a branch":      {"[includeIf \"onbranch:ma*\"]\n\tpath = more\n", "", "add >a +\n: git ignores b.swp\n"},
		"of the user, who ends with one": {"[core]\n\tautocrlf = input\n[include]\n\tpath = more\n\tpath = missing\n", "", "add >a +\n: git ignores b.swp\n"},
		"of the repository": {"", "[include]\n\tpath = HOME/more\n",
			"add >a +\nadd >b.swp +\n: the repository's configuration includes other files, which are not read\n"},
		"of the repository, on a condition": {"", "[includeIf \"gitdir:/\"]\n\tpath = HOME/more\n",
			"add >a +\nadd >b.swp +\n: the repository's configuration includes other files, which are not read\n"},
		"of both": {"[include]\n\tpath = more\n", "[include]\n\tpath = /dev/zero\n",
			"add >a +\n: git ignores b.swp\n: the repository's configuration includes other files, which are not read\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.write("x", "x\n")
			r.commit("first")
			home := t.TempDir()
			t.Setenv("HOME", home)
			must.OK(t, os.Unsetenv("GIT_CONFIG_GLOBAL"))
			places := strings.NewReplacer("REPO", r.dir, "HOME", home)
			for file, text := range map[string]string{
				".gitconfig": tt.user, "more": "[core]\n\texcludesFile = ~/ignored\n", "ignored": "*.swp\n",
			} {
				must.OK(t, os.WriteFile(filepath.Join(home, file), []byte(places.Replace(text)), 0o600))
			}
			config := filepath.Join(r.dir, ".git", "config")
			text := must.Get(os.ReadFile(config))(t)
			must.OK(t, os.WriteFile(config, append(text, places.Replace(tt.own)...), 0o600))
			s := take(t, r.dir)
			r.write("a", "a\n")
			r.write("b.swp", "b\n")
			var got strings.Builder
			got.WriteString(changes(t, s))
			for _, gap := range s.Gaps() {
				got.WriteString(gap.Path + ": " + gap.Why + "\n")
			}
			must.Equal(t, "the changes", tt.want, got.String())
		})
	}
}

// TestCompareIgnoresSnapshots checks that snapshots below the folder are not compared.
func TestCompareIgnoresSnapshots(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.commit("first")
	var both []*git.Before
	for range 2 {
		s := must.Get(git.Look(t.Context(), r.dir, &git.Options{Scratch: git.Scratch{Dir: filepath.Join(r.dir, "tmp")}}))(t)
		defer s.Remove()
		both = append(both, s)
	}
	r.write("u", "u\n")
	for _, s := range both {
		must.Equal(t, "the changes", "add >u +\n", changes(t, s))
	}
}

// TestCovers checks that a snapshot covers its folder, and no other repositories in it.
func TestCovers(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.commit("first")
	r.shell("git init -q nested; mkdir -p nested/sub plain/.git")
	plain := t.TempDir()
	if err := os.Mkdir(filepath.Join(plain, ".git"), 0o755); err != nil { // as sandboxes do
		t.Fatal(err)
	}
	for _, tt := range []struct {
		dir, root string
		covers    map[string]bool
	}{
		{r.dir, r.dir, map[string]bool{"a.txt": true, "new/x": true, "plain/x": true, "nested": false, "nested/sub/x": false, "nestedx": true, "../x": false}},
		{filepath.Join(r.dir, "nested", "sub"), filepath.Join(r.dir, "nested"), map[string]bool{"sub/x": true, "x": true, "../a.txt": false}},
		{plain, plain, map[string]bool{"sub/x": true, "../x": false}},
	} {
		s := take(t, tt.dir)
		must.Equal(t, "the root of "+tt.dir, tt.root, s.Root())
		for name, want := range tt.covers {
			must.Equal(t, tt.dir+" covers "+name, want, s.Covers(filepath.Join(tt.root, name)))
		}
	}
}

// TestDiffIsBounded checks that a diff has every section whole, and that each change without one says why.
func TestDiffIsBounded(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\ntwo\n")
	r.write("b.bin", "\x00\x01")
	r.write("moved.txt", strings.Repeat("same\n", 20))
	r.commit("more")
	bounds := []int{1 << 20, 250, 0}
	var looks []*git.Before
	for range bounds {
		looks = append(looks, take(t, r.dir))
	}
	r.write("a.txt", "one\n2\n")
	r.write("b.bin", "\x00\x02")
	r.write("é.txt", "n\n")
	r.git("mv", "moved.txt", "there.txt")
	var whole []string
	for i, max := range bounds {
		all, diff, err := looks[i].Compare(t.Context(), max)
		if err != nil || len(diff) > max {
			t.Errorf("%d bytes of at most %d, %v", len(diff), max, err)
		}
		sections := slices.Collect(git.Sections(diff))
		if i == 0 {
			whole = sections
		}
		shown := 0
		for _, c := range all {
			if c.Why == "" {
				shown++
			} else if c.Why != "too large" {
				t.Errorf("%s: %s", c.Path, c.Why)
			}
		}
		if len(all) != 4 || len(whole) != 4 || len(sections) != shown || (max == 250) != (0 < shown && shown < 4) {
			t.Errorf("of at most %d bytes: %d changes, %d of them shown, in %d sections", max, len(all), shown, len(sections))
		}
		if slices.ContainsFunc(sections, func(s string) bool { return !slices.Contains(whole, s) }) {
			t.Errorf("of at most %d bytes: a section is not whole: %s", max, diff)
		}
	}
}

// TestRoot compares Root with git, in a folder below a repository. Each case changes the .git of that folder.
func TestRoot(t *testing.T) {
	t.Parallel()
	run := func(dir, script string) (string, error) {
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TEMPLATE_DIR=",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		text, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(text)), err
	}
	around := t.TempDir()
	if text, err := run(around, "mkdir in; git init -q; git commit -q --allow-empty -m x"); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, tt := range []struct {
		name string
		lay  string // in the shell, in the folder in
		root string // "in", "out" for the repository around it
		dies bool   // git gives up
	}{
		{"a repository", "git init -q", "in", false}, {"no .git", "", "out", false}, {"an empty .git", "mkdir .git", "out", false},
		{"an empty file", "touch .git", "out", true},
		{"a link to nowhere", "ln -s nowhere .git", "out", false},
		{"a link to a repository", "git init -q --separate-git-dir=../folder; rm .git; ln -s ../folder .git", "in", false},
		{"no HEAD", "git init -q; rm .git/HEAD", "out", false},
		{"no objects", "git init -q; rm -r .git/objects", "out", false},
		{"no refs", "git init -q; rm -r .git/refs", "out", false},
		{"only HEAD", "mkdir .git; echo ref: refs/heads/main >.git/HEAD", "out", false},
		{"HEAD is empty", "git init -q; : >.git/HEAD", "out", false},
		{"HEAD is a folder", "git init -q; rm .git/HEAD; mkdir .git/HEAD", "out", false},
		{"HEAD is a hash", "git init -q; printf %040d 1 >.git/HEAD", "in", false},
		{"HEAD is a hash in capital letters", "git init -q; printf A%039d 1 >.git/HEAD", "in", false},
		{"HEAD is a longer hash", "git init -q; printf %064d 1 >.git/HEAD", "in", false},
		{"HEAD is a short hash", "git init -q; printf %039d 1 >.git/HEAD", "out", false},
		{"HEAD without a space", "git init -q; echo ref:refs/heads/main >.git/HEAD", "in", false},
		{"HEAD leads elsewhere", "git init -q; echo ref: /etc/passwd >.git/HEAD", "out", false},
		{"HEAD is a link", "git init -q; ln -sf refs/heads/main .git/HEAD", "in", false},
		{"HEAD is a link to elsewhere", "git init -q; mv .git/HEAD .git/other; ln -s other .git/HEAD", "out", false},
		{"the file of another folder", "git init -q --separate-git-dir=../folder", "in", false},
		{"a file that leads nowhere", "echo gitdir: nowhere >.git", "out", true},
		{"a file that leads to an empty folder", "mkdir d; echo gitdir: d >.git", "out", true},
		{"another working tree", "rm -d ../in; cd ..; git worktree add -q in", "in", false},
		{"another working tree of a repository that is gone", "rm -d ../in; cd ..; git worktree add -q in; mkdir empty; echo ../../../empty >.git/worktrees/in/commondir", "out", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
			want := out
			in := filepath.Join(out, "in")
			if tt.root == "in" {
				want = in
			}
			must.OK(t, os.CopyFS(out, os.DirFS(around)))
			if text, err := run(in, tt.lay); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			must.OK(t, os.MkdirAll(filepath.Join(in, "sub"), 0o700))
			must.Equal(t, "the root", want, git.Root(filepath.Join(in, "sub")))
			if text, err := run(in, "git -C sub rev-parse --show-toplevel"); (err != nil) != tt.dies || err == nil && text != want {
				t.Errorf("git: %q %v, want %q", text, err, want)
			}
		})
	}
}
