//go:build linux || darwin

package shared_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/shared"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestConnect shows that the second client finds the server of the first, and that each is served from its own folder.
func TestConnect(t *testing.T) {
	p := newPlace(t)
	a, b := p.must("/a"), p.must("/b")
	if a.PID() != b.PID() || a.PID() == os.Getpid() {
		t.Errorf("servers %d and %d, want one other than %d", a.PID(), b.PID(), os.Getpid())
	}
	if got, want := say(t, b, "x")+say(t, a, "x"), from(b.PID(), "/b")+from(a.PID(), "/a"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	got, err := p.Ask(t.Context(), "test", shared.Look)
	if err != nil || len(got.Clients) != 2 || got.Clients[0].PID != os.Getpid() || got.Clients[1].Folder != "/b" || got.PID != a.PID() || got.About != "a test" {
		t.Errorf("status %+v, %v", got, err)
	}
}

// TestRace starts many clients at the same time.
func TestRace(t *testing.T) {
	p := newPlace(t)
	var all sync.WaitGroup
	pids := make(chan int, 16)
	for range cap(pids) {
		all.Go(func() {
			c, err := p.connect("")
			if err != nil {
				t.Error(err)
				return
			}
			pids <- c.PID()
			c.Close()
		})
	}
	all.Wait()
	close(pids)
	first := <-pids
	for pid := range pids {
		if pid != first {
			t.Errorf("servers %d and %d", first, pid)
		}
	}
}

// TestKilled connects to the socket of a server that was killed.
func TestKilled(t *testing.T) {
	p := newPlace(t)
	c := p.must("")
	must.OK(t, syscall.Kill(c.PID(), syscall.SIGKILL))
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Fatal("the killed server answers")
	}
	if _, err := p.Ask(t.Context(), "test", shared.Look); !errors.Is(err, shared.ErrAbsent) {
		t.Errorf("status: %v", err)
	}
	if d := p.must(""); d.PID() == c.PID() {
		t.Error("the same server")
	}
}

// TestIdle lets a server end, which takes its socket along.
func TestIdle(t *testing.T) {
	p := newPlace(t)
	p.env = append(p.env, "SHARED_TEST_IDLE=1ms")
	first := p.must("") // may begin again if the server ends at once
	must.Equal(t, "the answer", from(first.PID(), ""), say(t, first, "x"))
	first.Close()
	for {
		if _, err := os.Lstat(filepath.Join(p.path, "test.sock")); err != nil {
			break
		}
	}
	if second := p.must(""); second.PID() == first.PID() {
		t.Error("the idle server does not end")
	}
}

// TestStop stops a server with its clients.
func TestStop(t *testing.T) {
	p := newPlace(t)
	c := p.must("")
	if s, err := p.Ask(t.Context(), "test", shared.Stop); err != nil || s.PID != c.PID() || len(s.Clients) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := syscall.Kill(c.PID(), 0); err == nil {
		if _, err := p.Ask(t.Context(), "test", shared.Look); !errors.Is(err, shared.ErrAbsent) {
			t.Errorf("after the end: %v", err)
		}
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the stopped server answers")
	}
}

// TestPage asks processes with an approvals page for a link: a shared server, and one that serves nobody
// and is stopped by nobody.
func TestPage(t *testing.T) {
	p := newPlace(t)
	p.must("")
	must.OK(t, p.Launch(t.Context(), "log", p.command("page")()))
	names, err := p.Names()
	if err != nil || len(names) != 2 || shared.Shared(names[0]) || !shared.Shared(names[1]) {
		t.Fatalf("%q, %v", names, err)
	}
	page, err := p.Ask(t.Context(), names[0], shared.Look)
	if err != nil || page.PID <= 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	if process, err := os.FindProcess(page.PID); err == nil {
		t.Cleanup(func() { process.Kill() })
	}
	for i, name := range names {
		if s, err := p.Ask(t.Context(), name, shared.Link); err != nil || s.Link != "LINK" {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if s, err := p.Ask(t.Context(), name, shared.Stop); (err == nil) != (i == 1) || err != nil && !strings.Contains(err.Error(), "does not do that") {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

// TestHostile puts other things in the place of the socket and of the files of a server. Links are not
// followed, and what listens is not the server.
func TestHostile(t *testing.T) {
	for name, test := range map[string]struct {
		plant func(p *place, path string) error
		want  string // part of the error; "" if there is a server then
	}{
		"file":                {func(_ *place, path string) error { return os.WriteFile(path, nil, 0o600) }, ""},
		"pipe":                {func(_ *place, path string) error { return syscall.Mkfifo(path, 0o600) }, ""},
		"link without target": {func(_ *place, path string) error { return os.Symlink("nowhere", path) }, ""},
		"folder":              {func(_ *place, path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) }, "did not start"},
		"link": {func(p *place, path string) error {
			_, err := net.Listen("unix", filepath.Join(p.path, "other"))
			return errors.Join(err, os.Symlink("other", path))
		}, "i/o timeout"},
		"log is a link":  {func(p *place, _ string) error { return os.Symlink("victim", p.Log("test")) }, "too many levels"},
		"lock is a link": {func(p *place, _ string) error { return os.Symlink("victim", filepath.Join(p.path, "lock")) }, "too many levels"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.Patience = time.Second
			must.OK(t, test.plant(p, filepath.Join(p.path, "test.sock")))
			_, err := p.connect("")
			must.Fail(t, "result", test.want, err)
		})
	}
}

// TestFolder opens folders that others could change.
func TestFolder(t *testing.T) {
	for name, test := range map[string]struct {
		plant func(t *testing.T, home string)
		want  string // part of the error; "" for none
	}{
		"new":         {func(t *testing.T, home string) { os.RemoveAll(home) }, ""},
		"of a group":  {func(t *testing.T, home string) { os.Chmod(home, 0o775) }, ""},
		"of all":      {func(t *testing.T, home string) { os.Chmod(home, 0o777) }, "other users have access"},
		"shared temp": {func(t *testing.T, home string) { os.Chmod(home, 0o777|os.ModeSticky) }, "other users have access"},
		"a file":      {func(t *testing.T, home string) { os.Remove(home); os.WriteFile(home, nil, 0o600) }, "not a directory"},
		"run is open to others": {func(t *testing.T, home string) {
			os.MkdirAll(home+"/codex-mcp/run", 0o700)
			os.Chmod(home+"/codex-mcp/run", 0o750)
		}, "other users have access"},
		"codex-mcp is a link": {func(t *testing.T, home string) { os.Symlink(t.TempDir(), home+"/codex-mcp") }, "is not a folder"},
		"run is a link": {func(t *testing.T, home string) {
			os.Mkdir(home+"/codex-mcp", 0o700)
			os.Symlink(t.TempDir(), home+"/codex-mcp/run")
		}, "is not a folder"},
		"run is a file": {func(t *testing.T, home string) {
			os.Mkdir(home+"/codex-mcp", 0o700)
			os.WriteFile(home+"/codex-mcp/run", nil, 0o600)
		}, "is not a folder"},
		"owner": {func(t *testing.T, home string) {
			if !boxtest.IsRoot() {
				t.Skip("only root can give a folder away")
			}
			os.MkdirAll(home+"/codex-mcp/run", 0o700)
			os.Chown(home+"/codex-mcp/run", 12345, -1)
		}, "belongs to another user"},
	} {
		t.Run(name, func(t *testing.T) {
			home := filepath.Join(t.TempDir(), "home")
			must.OK(t, os.Mkdir(home, 0o700))
			test.plant(t, home)
			f, err := shared.Open(home)
			must.Fail(t, "result", test.want, err)
			if err != nil {
				return
			}
			f.Close()
			if info, err := os.Stat(home + "/codex-mcp/run"); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the folder: %v, %v", info, err)
			}
		})
	}
	if _, err := shared.Open("relative"); err == nil {
		t.Error("a relative folder is accepted")
	}
}

// TestSweep removes the files of a server that has long ended, and of no other.
func TestSweep(t *testing.T) {
	p := newPlace(t)
	p.must("")
	write := func(name string, age time.Duration) {
		t.Helper()
		path := filepath.Join(p.path, name)
		if _, err := os.Lstat(path); err != nil {
			must.OK(t, os.WriteFile(path, nil, 0o600))
		}
		at := time.Now().Add(-age)
		must.OK(t, os.Chtimes(path, at, at))
	}
	const old, new = 8 * 24 * time.Hour, 6 * 24 * time.Hour
	for _, name := range []string{"old.lock", "old.log", "old.log.1", "old.pid", "mixed.pid"} {
		write(name, old)
	}
	write("mixed.log", new)
	for _, name := range []string{"test.log", "test.pid", "test.sock"} { // of a server that runs
		write(name, old)
	}
	must.OK(t, p.Sweep(t.Context()))
	left, err := filepath.Glob(filepath.Join(p.path, "*.*"))
	for i, path := range left {
		left[i] = filepath.Base(path)
	}
	if want := []string{"mixed.log", "test.log", "test.pid", "test.sock"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left: %q (%v), want %q", left, err, want)
	}
}
