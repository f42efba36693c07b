package patch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestReplaceNames has names of a repository's own files, as file systems read them. No plan has such a file, whatever is there.
func TestReplaceNames(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	for name, allowed := range map[string]bool{
		".git": false, ".git/config": false, "a/.git/hooks/x": false, ".GIT/x": false, ".gIt": false, ".git./x": false, ".git /x": false, ".git::$INDEX_ALLOCATION/x": false,
		".g\u200cit/x": false, "\ufeff.git": false, ".g\u0131t": false, "git~1": false, "GIT~2/x": false, ".hg/hgrc": false, ".jj": false,
		"..": false, "../x": false, "a/../../x": false, ". ./x": false, ".. /x": false, "...": false, "a\\..\\b": false, "a\\.git\\x": false,
		".gitignore": true, ".gitmodules": true, ".github/x": true, "git": true, "a.git": true, "x~1": true, "a/b..c": true, "$HOME/x": true, "~x": true, "http:x": runtime.GOOS != "windows",
	} {
		plan, others, err := Replace(Folder{Path: dir, Real: dir}, []File{{Path: name, Data: new("x")}})
		if refused := new(NameError); errors.As(err, &refused) == allowed || allowed && (err != nil || len(others) > 0 || len(plan.Changes()) != 1) {
			t.Errorf("%q: %v, %v", name, others, err)
		}
	}
}

// TestReplaceApplies makes, changes and removes files, and restores all of them if one cannot be written.
func TestReplaceApplies(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	read := func() (files string) {
		must.OK(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			data, _ := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path)
			files += filepath.ToSlash(rel) + " " + info.Mode().String() + " " + string(data) + "\n"
			return err
		}))
		return files
	}
	for name, mode := range map[string]fs.FileMode{"a": 0o640, "run": 0o755, "gone": 0o600, "there": 0o600} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(name), mode), os.Chmod(filepath.Join(dir, name), mode))
	}
	files := []File{
		{Path: "a", Was: true, Data: new("b\xff\x00"), Program: new(true)},
		{Path: "run", Was: true, Data: new("run"), Program: new(false)},
		{Path: "gone", Was: true},
		{Path: "there", Was: true, Data: new("there")},
		{Path: "missing", Was: true},
		{Path: "new/bin/p", Data: new("p"), Program: new(true)},
		{Path: "new/q", Data: new("q\n")},
	}
	before := read()
	plan, others, err := Replace(Folder{Path: dir, Real: dir}, append(files, File{Path: "new/q/below", Data: new("x")}))
	must.OK(t, err)
	must.Equal(t, "others", 0, len(others))
	if err := plan.Apply(); err == nil {
		t.Error("a file and a folder have one name")
	}
	must.Equal(t, "the files after a failure", before, read())

	plan, _, err = Replace(Folder{Path: dir, Real: dir}, files)
	must.OK(t, err)
	var shown []string
	for path, change := range plan.Changes() {
		shown = append(shown, filepath.Base(path)+" "+change.Kind()+" "+change.Diff()+"|"+plan.Why()[path])
	}
	slices.Sort(shown)
	must.Equal(t, "what is shown", strings.Join([]string{
		"a update @@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n|not text, 3 bytes, SHA-256 87eb8df4f791e65c63a5b4c9bea8f06b67c90176137bd9530ff66281ecc8988a; it becomes executable",
		"gone delete -gone\n\\ No newline at end of file|", "p add +p\n\\ No newline at end of file|it becomes executable", "q add +q|",
		"run update |it is no longer executable",
	}, "\n"), strings.Join(shown, "\n"))
	must.OK(t, plan.Apply())
	want := "a -rwxr-x--- b\xff\x00\nnew/bin/p -rwxr-xr-x p\nnew/q -rw-r--r-- q\n\nrun -rw-r--r-- run\nthere -rw------- there\n"
	if runtime.GOOS != "windows" { // which has no modes
		must.Equal(t, "the files", want, read())
	}
}

// TestReplaceOthers has something else where a file is to be.
func TestReplaceOthers(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	out := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755), os.WriteFile(filepath.Join(dir, "file"), []byte("file"), 0o600),
		os.WriteFile(filepath.Join(out, "x"), []byte("x"), 0o600))
	files := []File{
		{Path: "folder", Data: new("x")}, {Path: "file/below", Data: new("x")}, {Path: "file", Data: new("fil!")},
		{Path: "none", Was: true, Data: new("x")},
	}
	want := []string{"folder", "file/below", "file", "none"}
	for _, l := range []struct{ name, to string }{{"link", filepath.Join(out, "x")}, {"way", out}, {"dangling", filepath.Join(out, "none")}} {
		if err := os.Symlink(l.to, filepath.Join(dir, l.name)); err == nil { // else the system lets nobody make links
			files = append(files, File{Path: l.name, Data: new("y")}, File{Path: l.name, Was: true, Data: new("y")}, File{Path: l.name, Was: true},
				File{Path: l.name + "/x", Was: true, Data: new("y")}, File{Path: l.name + "/new", Data: new("y")})
			want = append(want, l.name, l.name, l.name, l.name+"/x", l.name+"/new")
		}
	}
	_, others, err := Replace(Folder{Path: dir, Real: dir}, files)
	must.OK(t, err)
	must.Equal(t, "others", strings.Join(want, " "), strings.Join(others, " "))
	_, _, err = Replace(Folder{Path: dir, Real: dir, Check: func(path string) error { return errors.New(filepath.Base(path) + " is withheld") }},
		[]File{{Path: "file", Was: true, Data: new("x")}})
	must.Fail(t, "Replace", "file is withheld", err)
}
