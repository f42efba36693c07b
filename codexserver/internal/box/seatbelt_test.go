//go:build unix

package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestSeatbelt(t *testing.T) {
	readOnly := seatbelt{}.arguments()
	must.Equal(t, "read-only", []string{"-p", seatbeltBase + "(deny file-write-setugid)\n", "--"}, readOnly)
	base := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	work := filepath.Join(base, "work")
	must.OK(t, os.MkdirAll(filepath.Join(work, "sub/repo"), 0o700), os.Symlink("sub/repo", filepath.Join(work, ".git")))
	got := seatbelt{roots: []string{work, "/other"}, protect: []string{work + "/.git", "/0/.git"}, network: true}.arguments()
	want := []string{"-p", seatbeltBase + seatbeltNetwork + `(allow file-write* (subpath (param "ROOT_0")))
(allow file-write* (subpath (param "ROOT_1")))
(deny file-write* (subpath (param "PROTECTED_0")))
(deny file-write* (subpath (param "PROTECTED_1")))
(deny file-write* (subpath (param "PROTECTED_2")))
(deny file-write-unlink (literal (param "WAY_0")))
(deny file-write-setugid)
`,
		"-D", "ROOT_0=" + work, "-D", "ROOT_1=/other",
		"-D", "PROTECTED_0=/0/.git", "-D", "PROTECTED_1=" + work + "/.git", "-D", "PROTECTED_2=" + work + "/sub/repo",
		"-D", "WAY_0=" + work + "/sub", "--",
	}
	must.Equal(t, "workspace", want, got)
}

// TestSeatbeltNames uses names that would change the profile if they were part of it.
func TestSeatbeltNames(t *testing.T) {
	plain := seatbelt{roots: []string{"/a"}, protect: []string{"/a/.git"}}.arguments()
	for _, name := range []string{
		`/a"))(allow file-write*)(allow network*);`, "/a\n(allow default)", `/a\`, `/a\")`, "/a;", "/-p", "/a=b", "/(param \"ROOT_1\")", "/a\x00b", "/\xff#|", "/é",
	} {
		got := seatbelt{roots: []string{name}, protect: []string{name + "/.git"}}.arguments()
		if len(got) != len(plain) || got[1] != plain[1] {
			t.Errorf("%q changes the profile: %q", name, got)
			continue
		}
		if key, value, _ := strings.Cut(got[3], "="); key != "ROOT_0" || value != name {
			t.Errorf("%q is passed as %q", name, got[3])
		}
	}
}

// TestSeatbeltTrial tries programs that deny too little or too much.
func TestSeatbeltTrial(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ name, script, want string }{
		{"denies as it should", "echo write; echo lock; echo look at processors; echo open a terminal", ""},
		{"denies nothing", `while [ "$1" != -- ]; do shift; done; shift; exec "$@"`, `write a protected folder, write outside, connect"`},
		{"does not know what is protected", "echo write; echo write a protected folder", `could do "write, write a protected folder"`},
		{"gives no locks, processors and terminals", "echo write", `could do "write", and should do "write, lock`},
		{"does not let the command write", "true", `could do ""`},
		{"runs nothing", "exit 71", "exit status 71"}, {"is not there", "", "no such file"},
	} {
		program := filepath.Join(dir, tt.name)
		if tt.script != "" {
			must.OK(t, testenv.WriteProgram(program, []byte("#!/bin/bash\n"+tt.script)))
		}
		err := trySeatbelt(program)
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

// TestFoldersAtTheSameTime judges the folders of several conversations at the same time. Each name
// leads to one folder from then on.
func TestFoldersAtTheSameTime(t *testing.T) {
	var f Programs
	top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	var names []string
	for i := range 4 {
		names = append(names, filepath.Join(top, fmt.Sprint(i)))
		must.OK(t, os.Mkdir(names[i], 0o700))
	}
	no := errors.New("no")
	refuse := func(name, _ string, _ fs.FileInfo) error {
		if name == names[3] {
			return no
		}
		return nil
	}
	got, errs := make([][]*folder, 8), make([][]error, 8)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i], errs[i] = f.judge(names, refuse) })
	}
	all.Wait()
	for n, folders := range got {
		for i, one := range folders {
			if err := errs[n][i]; i == 3 && !errors.Is(err, no) || i < 3 && (err != nil || one != got[0][i] || one.path != names[i]) {
				t.Errorf("%s: %+v, %v", names[i], one, err)
			}
		}
	}
}
