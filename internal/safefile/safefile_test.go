package safefile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestWrite(t *testing.T) {
	for _, tt := range []struct {
		name         string
		before, want fs.FileMode // before: 0 = there is no file
	}{{"new", 0, 0o600}, {"open to all", 0o644, 0o600}, {"for reading alone", 0o400, 0o400}} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want&0o200 == 0 {
				testenv.NeedsUnix(t, testenv.Modes)
			}
			dir := filepath.Join(t.TempDir(), "a", "b")
			path := filepath.Join(dir, "file")
			if tt.before != 0 {
				must.OK(t, os.MkdirAll(dir, 0o700), os.WriteFile(path, []byte("before, and longer"), tt.before))
			}
			must.OK(t, safefile.Write(path, []byte("after"), 0o600))
			must.Equal(t, "the file", "after", string(must.Get(os.ReadFile(path))(t)))
			if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != tt.want {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestWriteFails(t *testing.T) {
	testenv.NeedsLinks(t)
	dir := t.TempDir()
	if err := safefile.Write(dir, []byte("x"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	blocked := filepath.Join(dir, "file")
	loop := filepath.Join(dir, "loop")
	must.OK(t, os.WriteFile(blocked, nil, 0o600), os.Symlink(loop, loop))
	if err := safefile.Write(filepath.Join(blocked, "below"), []byte("x"), 0o600); err == nil {
		t.Error("a file became a folder")
	}
	if err := safefile.Write(loop, []byte("x"), 0o600); err == nil {
		t.Error("a link to itself was written")
	}
}

func TestWriteThroughLink(t *testing.T) {
	testenv.NeedsLinks(t)
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	must.OK(t, os.WriteFile(real, nil, 0o600), os.Symlink(real, link), safefile.Write(link, []byte("after"), 0o600))
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	must.Equal(t, "the file", "after", string(must.Get(os.ReadFile(real))(t)))
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	must.OK(t, os.WriteFile(path, []byte("12345"), 0o600))
	must.Equal(t, "the file", "12345", string(must.Get(safefile.Read(path, 5))(t)))
	var size *safefile.SizeError
	if _, err := safefile.Read(path, 4); !errors.As(err, &size) || size.Path != path || size.Max != 4 {
		t.Errorf("too large: %v", err)
	}
	var kind *safefile.KindError
	if _, err := safefile.Read(dir, 5); !errors.As(err, &kind) || kind.Path != dir || !kind.Mode.IsDir() {
		t.Errorf("a folder: %v", err)
	}
	if _, err := safefile.Read(filepath.Join(dir, "no"), 5); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("nothing: %v", err)
	}
}

func TestOpenIn(t *testing.T) {
	testenv.NeedsLinks(t)
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	must.OK(t, err, os.WriteFile(filepath.Join(dir, "file"), []byte("long content"), 0o600), os.Symlink("file", filepath.Join(dir, "link")))
	defer root.Close()
	var kind *safefile.KindError
	if _, err := safefile.OpenIn(root, "link", os.O_RDONLY); !errors.As(err, &kind) || kind.Path != filepath.Join(dir, "link") {
		t.Errorf("a link: %v", err)
	}
	if _, err := safefile.OpenIn(root, "no", os.O_RDONLY); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), filepath.Join(dir, "no")) {
		t.Errorf("nothing: %v", err)
	}
	f := must.Get(safefile.OpenIn(root, "file", os.O_RDWR))(t)
	must.Equal(t, "the file", "long content", string(must.Get(f.ReadAll(100))(t)))
	must.OK(t, f.Overwrite("short"), f.Close())
	must.Equal(t, "the file", "short", string(must.Get(os.ReadFile(filepath.Join(dir, "file")))(t)))
}

func TestLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for _, tt := range []struct {
		name          string
		first, second func(syscall.Conn) error
		want          error
	}{
		{"alone twice", safefile.Lock, safefile.Lock, safefile.ErrLocked},
		{"alone, then shared", safefile.Lock, safefile.Share, safefile.ErrLocked},
		{"shared, then alone", safefile.Share, safefile.Lock, safefile.ErrLocked},
		{"shared twice", safefile.Share, safefile.Share, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one, two := open(t, path), open(t, path)
			defer two.Close()
			must.OK(t, tt.first(one))
			if err := tt.second(two); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			must.OK(t, one.Close())
			if err := tt.second(two); err != nil {
				t.Errorf("after the first was closed: %v", err)
			}
			if err := safefile.Lock(one); err == nil {
				t.Error("a closed file was locked")
			}
		})
	}
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600))(t)
	return f
}

// TestLog appends to a log with two writers in each of two logs, as two processes do: it is renamed when it is
// full, no line is torn, and the newest lines are kept.
func TestLog(t *testing.T) {
	testenv.NeedsUnix(t, testenv.OpenFiles)
	const lines, most = 200, 4096
	path := filepath.Join(t.TempDir(), "log")
	var writing sync.WaitGroup
	var l *safefile.Log
	for who := range 4 {
		if who%2 == 0 {
			var err error
			l, err = safefile.OpenLog(path, most)
			must.OK(t, err)
			defer l.Close()
		}
		l := l
		writing.Go(func() {
			for n := range lines {
				if _, err := fmt.Fprintf(l, "%d %d %s.\n", who, n, strings.Repeat("x", n%97)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	var all []byte
	for _, name := range []string{path + ".1", path} {
		data, err := os.ReadFile(name)
		if err != nil || len(data) > most {
			t.Errorf("%s has %d bytes, %v", name, len(data), err)
		}
		all = append(all, data...)
	}
	last := map[string]int{}
	for line := range bytes.Lines(all) {
		var who, n int
		if got, err := fmt.Sscanf(string(line), "%d %d ", &who, &n); got != 2 || err != nil || !bytes.HasSuffix(line, []byte(".\n")) {
			t.Fatalf("torn: %q", line)
		}
		if before, ok := last[fmt.Sprint(who)]; ok && n != before+1 {
			t.Errorf("writer %d: line %d follows line %d", who, n, before)
		}
		last[fmt.Sprint(who)] = n
	}
	for who, n := range last {
		if n != lines-1 {
			t.Errorf("the last line of writer %s is %d", who, n)
		}
	}
	if left, err := filepath.Glob(path + "*"); err != nil || len(left) != 2 {
		t.Errorf("files: %v, %v", left, err)
	}
}

// TestLogSize fills a log to its last byte.
func TestLogSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := must.Get(safefile.OpenLog(path, 10))(t)
	defer l.Close()
	for i, want := range []string{"", "", "12345\n78\n\n"} {
		must.Get(l.Write([]byte([]string{"12345\n", "78\n\n", "longer than all\n"}[i])))(t)
		if got, err := os.ReadFile(path + ".1"); string(got) != want || err != nil && want != "" {
			t.Errorf("after write %d: %q, %v", i, got, err)
		}
	}
}

// TestLogTorn appends to a log whose last line was cut, as when the system stops while it is written.
func TestLogTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	must.OK(t, os.WriteFile(path, []byte("one\ntw"), 0o600))
	l := must.Get(safefile.OpenLog(path, 0))(t)
	defer l.Close()
	for _, write := range []func([]byte) (int, error){l.Write, l.WriteSync} {
		if n, err := write([]byte("three\n")); n != 6 || err != nil {
			t.Error(n, err)
		}
	}
	must.Equal(t, "the file", "one\ntw\nthree\nthree\n", string(must.Get(os.ReadFile(path))(t)))
}

// TestReserve checks that nothing is left behind, and that a folder that cannot be made has no room.
func TestReserve(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for _, size := range []int{0, 1, 1 << 20, 2 << 20} {
		r := safefile.NewReserve(dir, size)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := r.Check(); err != nil {
					t.Errorf("%d bytes: %v", size, err)
				}
			})
		}
		all.Wait()
		must.OK(t, os.RemoveAll(dir))
		if err := r.Check(); err != nil {
			t.Errorf("%d bytes, in a folder that was removed: %v", size, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		for range 2 {
			must.Check(t, r.Release())
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	if err := safefile.NewReserve(filepath.Join(file, "folder"), 1).Check(); err == nil {
		t.Error("a file has room for files")
	}
	var none *safefile.Reserve
	if none.Check() != nil || none.Release() != nil {
		t.Error("no reserve fails")
	}
}

// TestExposed checks who is told that others may read the secrets in a folder, or put files into it.
func TestExposed(t *testing.T) {
	profile := t.TempDir()
	t.Setenv("HOME", profile)
	t.Setenv("USERPROFILE", profile)
	open := t.TempDir()
	must.OK(t, os.Chmod(open, 0o777))
	for _, tt := range []struct {
		system, folder string
		want           bool
	}{
		{"windows", filepath.Join(profile, ".codex"), false},
		{"windows", profile + "s", true},
		{"linux", profile + "s", false}, // the file's mode decides
		{"linux", open, true},
	} {
		if err := safefile.Exposed(tt.system, tt.folder); (err != nil) != tt.want {
			t.Errorf("%s, %s: %v", tt.system, tt.folder, err)
		}
	}
}

// TestName opens a file by a link, by a folder and, on Linux, under the name that it has got since.
func TestName(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	must.OK(t, os.WriteFile(file, nil, 0o600), os.Symlink("file", link))
	root := must.Get(os.OpenRoot(dir))(t)
	defer root.Close()
	for _, f := range []*safefile.File{must.Get(safefile.Open(link))(t), must.Get(safefile.OpenIn(root, "file", os.O_RDONLY))(t)} {
		must.Equal(t, "the name", file, f.Name())
		if runtime.GOOS == "linux" {
			must.OK(t, os.Rename(file, file+"2"))
			must.Equal(t, "the name now", file+"2", f.Name())
			must.OK(t, os.Rename(file+"2", file))
		}
		must.OK(t, f.Close())
	}
}
