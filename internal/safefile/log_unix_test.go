//go:build unix

package safefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// traps are what a command may put where a log is, or where the log makes its next file.
var traps = map[string]struct {
	put  func(victim, place string) error
	kind bool // the error is a KindError
}{
	"a link":            {os.Symlink, true},
	"a link to nothing": {func(victim, place string) error { return os.Symlink(victim+"-new", place) }, true},
	"another name":      {os.Link, false},
	"a pipe":            {func(_, place string) error { return syscall.Mkfifo(place, 0o600) }, true},
	"a folder":          {func(_, place string) error { return os.Mkdir(place, 0o700) }, true},
	"a link to a pipe": {func(victim, place string) error {
		return errors.Join(syscall.Mkfifo(victim+"-pipe", 0o600), os.Symlink(victim+"-pipe", place))
	}, true},
	"a link to a terminal": {func(_, place string) error { return os.Symlink("/dev/tty", place) }, true},
}

// TestLogTraps checks that a log writes nothing through what a command has put in its place: at the
// start, when the file is replaced, and when the next one begins. Nothing waits.
func TestLogTraps(t *testing.T) {
	line := []byte(strings.Repeat("x", 4095) + "\n")
	for name, trap := range traps {
		for when, open := range map[string]func(t *testing.T, place string, put func()) error{
			"at the start": func(_ *testing.T, place string, put func()) error {
				put()
				_, err := safefile.OpenLog(place, 4096)
				return err
			},
			"later": func(t *testing.T, place string, put func()) error {
				l := openLog(t, place)
				if err := os.Remove(place); err != nil {
					t.Fatal(err)
				}
				put()
				_, err := l.Write(line)
				if _, again := l.Write(line); (err == nil) != (again == nil) {
					t.Errorf("the second write: %v", again)
				}
				if err := os.RemoveAll(place); err != nil {
					t.Fatal(err)
				}
				if _, err := l.Write(line); err != nil {
					t.Errorf("without the trap: %v", err)
				}
				return err
			},
			"at the next file": func(t *testing.T, place string, put func()) error {
				l := openLog(t, place)
				if _, err := l.Write(line); err != nil {
					t.Fatal(err)
				}
				inode, err := os.Stat(place)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(place, filepath.Join(filepath.Dir(place), "old")); err != nil {
					t.Fatal(err)
				}
				put()
				_, err = l.Write(line)
				if old, serr := os.Stat(filepath.Join(filepath.Dir(place), "old")); serr != nil || !os.SameFile(inode, old) || old.Size() != int64(len(line)) {
					t.Errorf("the old file: %v, %v", old, serr)
				}
				return err
			},
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				dir := t.TempDir()
				victim, place := filepath.Join(dir, "bashrc"), filepath.Join(dir, "logs", "log")
				if err := errors.Join(os.WriteFile(victim, []byte("mine\n"), 0o600), os.Mkdir(filepath.Dir(place), 0o700)); err != nil {
					t.Fatal(err)
				}
				err := open(t, place, func() {
					if err := trap.put(victim, place); err != nil {
						t.Fatal(err)
					}
				})
				var kind *safefile.KindError
				if err == nil || errors.As(err, &kind) != trap.kind || !strings.Contains(err.Error(), place) {
					t.Errorf("%v", err)
				}
				if text, err := os.ReadFile(victim); err != nil || string(text) != "mine\n" {
					t.Errorf("the victim: %q, %v", text, err)
				}
				if _, err := os.Lstat(victim + "-new"); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("it was made: %v", err)
				}
			})
		}
	}
}

func openLog(t *testing.T, place string) *safefile.Log {
	t.Helper()
	l, err := safefile.OpenLog(place, 4096)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// lineOf returns a line of so many bytes.
func lineOf(size int) []byte { return append(make([]byte, size-1), '\n') }

// TestLogFolder replaces the folder of a log by a link to another one: the log stays where it was.
func TestLogFolder(t *testing.T) {
	dir := t.TempDir()
	folder, other := filepath.Join(dir, "logs"), filepath.Join(dir, "other")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Mkdir(other, 0o700)); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, filepath.Join(folder, "log"))
	if err := errors.Join(os.Rename(folder, folder+"-old"), os.Symlink(other, folder), os.Remove(folder+"-old/log")); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the second and third begin a new file
		if _, err := l.Write(lineOf(4000)); err != nil {
			t.Error(err)
		}
	}
	for folder, want := range map[string]int{other: 0, folder + "-old": 2} {
		if got, err := os.ReadDir(folder); err != nil || len(got) != want {
			t.Errorf("%s has %v, %v", folder, got, err)
		}
	}
}

// TestLogHeld locks a log as a command can that may only read it: each line is written, and only the
// first write waits.
func TestLogHeld(t *testing.T) {
	t.Parallel() // it waits
	place := filepath.Join(t.TempDir(), "log")
	l := openLog(t, place)
	f, err := os.Open(place)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := safefile.Lock(f); err != nil {
		t.Fatal(err)
	}
	for range 300 { // five minutes, if each waited
		if _, err := l.Write(lineOf(100)); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(place); err != nil || info.Size() != 30_000 {
		t.Errorf("%v, %v", info, err)
	}
	if err := safefile.Unlock(f); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Write(lineOf(100)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(place + ".1"); err != nil || info.Size() != 30_000 {
		t.Errorf("the next file did not begin: %v, %v", info, err)
	}
}
