//go:build unix

package safefile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
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
				must.OK(t, os.Remove(place))
				put()
				_, err := l.Write(line)
				if _, again := l.Write(line); (err == nil) != (again == nil) {
					t.Errorf("the second write: %v", again)
				}
				must.OK(t, os.RemoveAll(place))
				if _, err := l.Write(line); err != nil {
					t.Errorf("without the trap: %v", err)
				}
				return err
			},
			"at the next file": func(t *testing.T, place string, put func()) error {
				l := openLog(t, place)
				must.Get(l.Write(line))(t)
				inode, err := os.Stat(place)
				must.OK(t, err, os.Rename(place, filepath.Join(filepath.Dir(place), "old")))
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
				must.OK(t, os.WriteFile(victim, []byte("mine\n"), 0o600), os.Mkdir(filepath.Dir(place), 0o700))
				err := open(t, place, func() { must.OK(t, trap.put(victim, place)) })
				var kind *safefile.KindError
				if err == nil || errors.As(err, &kind) != trap.kind || !strings.Contains(err.Error(), place) {
					t.Errorf("%v", err)
				}
				must.Equal(t, "the victim", "mine\n", string(must.Get(os.ReadFile(victim))(t)))
				if _, err := os.Lstat(victim + "-new"); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("it was made: %v", err)
				}
			})
		}
	}
}

func openLog(t *testing.T, place string) *safefile.Log {
	t.Helper()
	l := must.Get(safefile.OpenLog(place, 4096))(t)
	t.Cleanup(func() { must.OK(t, l.Close()) })
	return l
}

// lineOf returns a line of so many bytes.
func lineOf(size int) []byte { return append(make([]byte, size-1), '\n') }

// TestLogFolder replaces the folder of a log by a link to another one: the log stays where it was.
func TestLogFolder(t *testing.T) {
	dir := t.TempDir()
	folder, other := filepath.Join(dir, "logs"), filepath.Join(dir, "other")
	must.OK(t, os.Mkdir(folder, 0o700), os.Mkdir(other, 0o700))
	l := openLog(t, filepath.Join(folder, "log"))
	must.OK(t, os.Rename(folder, folder+"-old"), os.Symlink(other, folder), os.Remove(folder+"-old/log"))
	for range 3 { // the second and third begin a new file
		must.Get(l.Write(lineOf(4000)))(t)
	}
	for folder, want := range map[string]int{other: 0, folder + "-old": 2} {
		if got, err := os.ReadDir(folder); err != nil || len(got) != want {
			t.Errorf("%s has %v, %v", folder, got, err)
		}
	}
}

// TestLogHeld locks a log as a command can that may only read it: each line is written, and only the first write waits.
func TestLogHeld(t *testing.T) {
	t.Parallel() // it waits
	place := filepath.Join(t.TempDir(), "log")
	l := openLog(t, place)
	f := must.Get(os.Open(place))(t)
	defer f.Close()
	must.OK(t, safefile.Lock(f))
	for range 300 { // five minutes, if each waited
		must.Get(l.Write(lineOf(100)))(t)
	}
	if info, err := os.Stat(place); err != nil || info.Size() != 30_000 {
		t.Errorf("%v, %v", info, err)
	}
	must.OK(t, safefile.Unlock(f))
	must.Get(l.Write(lineOf(100)))(t)
	if info, err := os.Stat(place + ".1"); err != nil || info.Size() != 30_000 {
		t.Errorf("the next file did not begin: %v, %v", info, err)
	}
}

// TestSecret loads secrets that are not there yet, there, and not secret.
func TestSecret(t *testing.T) {
	const secret = "a secret"
	write := func(mode os.FileMode) func(string) error {
		return func(path string) error {
			if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
				return err
			}
			return os.Chmod(path, mode)
		}
	}
	for name, tt := range map[string]struct {
		make func(path string) error
		want string // "" is an error
	}{
		"none":                         {func(string) error { return nil }, "a new one"},
		"no folder":                    {func(path string) error { return os.Remove(filepath.Dir(path)) }, "a new one"},
		"there":                        {write(0o600), secret},
		"that nobody can write":        {write(0o400), secret},
		"that a group can read":        {write(0o640), ""},
		"that others can read":         {write(0o604), ""},
		"that others can write":        {write(0o602), ""},
		"a link":                       {func(path string) error { return os.Symlink("elsewhere", path) }, ""},
		"a folder":                     {func(path string) error { return os.Mkdir(path, 0o700) }, ""},
		"a longer one":                 {func(path string) error { return os.WriteFile(path, []byte("0123456789"), 0o600) }, ""},
		"one as long as it may be":     {func(path string) error { return os.WriteFile(path, []byte("012345678"), 0o600) }, "012345678"},
		"of another process meanwhile": {nil, secret},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "folder", "key")
			must.OK(t, os.Mkdir(filepath.Dir(path), 0o700))
			create := func() []byte { return []byte("a new one") }
			if tt.make == nil {
				create = func() []byte {
					must.Check(t, write(0o600)(path))
					return []byte("a late one")
				}
			} else if err := tt.make(path); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got, err := safefile.LoadSecret(path, 9, create); string(got) != tt.want || (err == nil) != (tt.want != "") {
					t.Errorf("%q, %v", got, err)
				}
			}
			if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
				t.Errorf("left %v, %v", left, err)
			}
			if info, err := os.Stat(path); tt.want == "a new one" && (err != nil || info.Mode() != 0o600) {
				t.Errorf("%v, %v", info, err)
			}
		})
	}
}

// TestSpecialFiles checks that special files are refused at once, also behind links.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	must.OK(t, err, syscall.Mkfifo(pipe, 0o600))
	defer listener.Close()
	root := must.Get(os.OpenRoot(dir))(t)
	defer root.Close()
	for _, path := range []string{pipe, filepath.Join(dir, "socket"), "/dev/zero", "/dev/null", "/dev/tty", dir} {
		link := filepath.Join(dir, "to "+filepath.Base(path))
		must.OK(t, os.Symlink(path, link))
		for _, name := range []string{path, link} {
			var kind *safefile.KindError
			if _, err := safefile.Read(name, 100); !errors.As(err, &kind) || kind.Path != name {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	var kind *safefile.KindError
	if _, err := safefile.OpenIn(root, "pipe", os.O_RDWR); !errors.As(err, &kind) {
		t.Errorf("in a folder: %v", err)
	}
}

type fileInfo struct {
	fs.FileInfo
	mode fs.FileMode
	uid  int
}

func (i fileInfo) Mode() fs.FileMode { return i.mode }
func (i fileInfo) Sys() any          { return &syscall.Stat_t{Uid: uint32(i.uid)} }

func TestIsOwn(t *testing.T) {
	for _, tt := range []struct {
		mode fs.FileMode
		uid  int
		want bool
	}{
		{0o600, os.Getuid(), true},
		{0o644, os.Getuid(), true},
		{0o620, os.Getuid(), false},
		{0o602, os.Getuid(), false},
		{0o600, os.Getuid() + 1, false},
	} {
		must.Equal(t, fmt.Sprint(tt.mode, tt.uid), tt.want, safefile.IsOwn(fileInfo{mode: tt.mode, uid: tt.uid}))
	}
}
