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

// TestProgramsAtTheSameTime starts and finds programs while folders become writable. Each goroutine does
// one thing, so that no other lock orders it.
func TestProgramsAtTheSameTime(t *testing.T) {
	p := &Programs{Temporary: []string{}}
	top := t.TempDir()
	found := func(name string) func() bool {
		return func() bool { _, err := p.Find(name, "/", "/bin"); return err == nil }
	}
	next := 0
	var all sync.WaitGroup
	for name, does := range map[string]func() bool{
		"Add":      func() bool { next++; p.Add(filepath.Join(top, fmt.Sprint(next)), "relative"); return true },
		"Folders":  func() bool { return len(p.Folders()) <= 20 },
		"Writable": func() bool { return !p.Writable("/bin/sh") },
		"Path":     func() bool { return p.Path("/bin:relative") == "/bin" },
		"Find":     found("sh"),
		"path":     found("/bin/sh"),
		"Start": func() bool {
			started := false
			err := p.Start(&exec.Cmd{Path: "/bin/sh"}, func() error { started = true; return nil })
			return err == nil && started
		},
	} {
		all.Go(func() {
			for range 20 {
				if !does() {
					t.Error(name)
				}
			}
		})
	}
	all.Wait()
	if got := len(p.Folders()); got != 20 || !p.Writable(filepath.Join(top, "20", "x")) {
		t.Errorf("%d folders", got)
	}
}
