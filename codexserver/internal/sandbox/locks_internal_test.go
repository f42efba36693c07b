//go:build unix

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// TestFoldersAtTheSameTime judges the folders of several conversations at the same time. Each name
// leads to one folder from then on.
func TestFoldersAtTheSameTime(t *testing.T) {
	var f Folders
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range 4 {
		names = append(names, filepath.Join(top, fmt.Sprint(i)))
		if err := os.Mkdir(names[i], 0o700); err != nil {
			t.Fatal(err)
		}
	}
	no := errors.New("no")
	refuse := func(name, _ string, _ fs.FileInfo) error {
		if name == names[3] {
			return no
		}
		return nil
	}
	got := make([][]verdict, 8)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i] = f.judge(names, refuse) })
	}
	all.Wait()
	for _, verdicts := range got {
		for i, v := range verdicts {
			if i == 3 && !errors.Is(v.err, no) || i < 3 && (v.err != nil || v.folder != got[0][i].folder || v.folder.path != names[i]) {
				t.Errorf("%s: %+v", names[i], v)
			}
		}
	}
}

// TestProgramsAtTheSameTime starts programs while folders become writable.
func TestProgramsAtTheSameTime(t *testing.T) {
	p := &Programs{Temporary: []string{}}
	top := t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			p.Add(filepath.Join(top, fmt.Sprint(i)), "relative")
			started := false
			if err := p.Start(&exec.Cmd{Path: "/bin/sh"}, func() error { started = true; return nil }); err != nil || !started {
				t.Errorf("started %t, %v", started, err)
			}
			_ = p.Folders()
			if got := p.Path("/bin:relative"); got != "/bin" {
				t.Errorf("PATH=%s", got)
			}
			for _, name := range []string{"sh", "/bin/sh"} {
				if _, err := p.Find(name, "/", "/bin"); err != nil {
					t.Error(err)
				}
			}
			if p.Writable("/bin/sh") || !p.Writable(filepath.Join(top, fmt.Sprint(i), "x")) {
				t.Error("writable is wrong")
			}
		})
	}
	all.Wait()
	if got := len(p.Folders()); got != 8 {
		t.Errorf("%d folders", got)
	}
}
