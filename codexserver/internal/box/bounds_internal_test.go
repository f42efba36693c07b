//go:build unix

package box

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
	var f Programs
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

// TestProgramsAtTheSameTime starts and finds programs while folders become writable. Each pair is alone
// with its Programs, because the race detector remembers few of many accesses.
func TestProgramsAtTheSameTime(t *testing.T) {
	top := t.TempDir()
	find := func(name string) func(*Programs) bool {
		return func(p *Programs) bool { _, err := p.Find(name, "/", "/bin"); return err == nil }
	}
	for name, does := range map[string]func(*Programs) bool{
		"Add":      func(p *Programs) bool { p.Add(filepath.Join(top, "more"), "relative"); return true },
		"Folders":  func(p *Programs) bool { return len(p.Folders()) <= 21 },
		"Writable": func(p *Programs) bool { return !p.Writable("/bin/sh") },
		"Environ": func(p *Programs) bool {
			env, _ := p.Environ([]string{"PATH=/bin:relative"})
			return env[0] == "PATH=/bin"
		},
		"Find":   find("sh"),
		"a path": find("/bin/sh"),
		"Start": func(p *Programs) bool {
			started := false
			err := p.Start(&exec.Cmd{Path: "/bin/sh"}, func() error { started = true; return nil })
			return err == nil && started
		},
	} {
		p := &Programs{Temporary: []string{}}
		var both sync.WaitGroup
		both.Go(func() {
			for i := range 20 {
				p.Add(filepath.Join(top, fmt.Sprint(i)))
			}
		})
		both.Go(func() {
			for range 20 {
				if !does(p) {
					t.Error(name)
				}
			}
		})
		both.Wait()
		if got := len(p.Folders()); got < 20 || !p.Writable(filepath.Join(top, "19", "x")) {
			t.Errorf("%s: %d folders", name, got)
		}
	}
}
