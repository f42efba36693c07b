package servertest

import (
	"crypto/rand"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// endLimit bounds every wait. Only a failing test reaches it.
const endLimit = 30 * time.Second

// victim is a codex-mcp in its own folder that handles its first call.
type victim struct {
	cmd   *exec.Cmd
	mark  string        // a variable that its processes inherit
	alive *os.File      // reaches its end when the daemons have ended
	up    chan struct{} // closed when the daemons run
}

// firstCall is the first lines of a client, with a sandbox mode.
const firstCall = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"go","approval-policy":"never","sandbox":%q}}}
`

// prepareVictim sets a command's folder and environment.
func prepareVictim(t *testing.T, cmd *exec.Cmd) *victim {
	t.Helper()
	s := &victim{cmd: cmd, mark: "END_TEST=" + rand.Text(), up: make(chan struct{})}
	cmd.Dir = t.TempDir()
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"), "HOME="+t.TempDir(), s.mark)
	return s
}

func startVictim(t *testing.T, cmd *exec.Cmd, sandbox string) *victim {
	t.Helper()
	s := prepareVictim(t, cmd)
	dir := cmd.Dir
	for _, name := range []string{"alive", "up"} {
		must.OK(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
	}
	var err error
	if s.alive, err = os.OpenFile(filepath.Join(dir, "alive"), os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.alive.Close() })
	// for writing too, so that reading never ends
	up, err := os.OpenFile(filepath.Join(dir, "up"), os.O_RDWR|syscall.O_NONBLOCK, 0)
	must.OK(t, err)
	read := make(chan struct{})
	go func() {
		defer close(read)
		if n, _ := up.Read(make([]byte, 3)); n > 0 {
			close(s.up)
		}
	}()
	t.Cleanup(func() { up.Close(); <-read })

	in := must.Get(cmd.StdinPipe())(t)
	must.OK(t, cmd.Start())
	t.Cleanup(func() { // when the test failed
		cmd.Process.Kill()
		s.kill()
	})
	if _, err := fmt.Fprintf(in, firstCall, sandbox); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *victim) awaitUp(t *testing.T) {
	t.Helper()
	select {
	case <-s.up:
	case <-time.After(endLimit):
		t.Fatal("the command did not start")
	}
}

// end ends the server and waits until nothing of it is left.
func (s *victim) end(t *testing.T, sig os.Signal) {
	t.Helper()
	must.OK(t, s.cmd.Process.Signal(sig))
	_ = s.cmd.Wait()
	deadline := s.gone(t)
	s.alive.SetReadDeadline(deadline)
	if _, err := io.ReadAll(s.alive); err != nil {
		t.Errorf("a daemon is left: %v", err)
	}
}

// gone waits until no process of an ended server is left. It returns the deadline, which also holds for the daemons.
func (s *victim) gone(t *testing.T) time.Time {
	t.Helper()
	deadline := time.Now().Add(endLimit)
	// A process in exec has no environment for a moment, so look three times.
	for none := 0; none < 3; <-time.After(5 * time.Millisecond) {
		left := s.processes()
		if none++; len(left) > 0 {
			none = 0
		}
		if time.Now().After(deadline) {
			t.Fatalf("left: %q", left)
		}
	}
	return deadline
}

// processes returns the live processes with the server's mark or in its folder.
func (s *victim) processes() (found []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, _ := os.ReadFile(dir + "/environ")
		cwd, _ := os.Readlink(dir + "/cwd")
		if strings.Contains(string(env), s.mark) || cwd == s.cmd.Dir {
			words, _ := os.ReadFile(dir + "/cmdline")
			found = append(found, fmt.Sprintf("%s %s", filepath.Base(dir), words))
		}
	}
	return found
}

func (s *victim) kill() {
	for _, p := range s.processes() {
		pid, _, _ := strings.Cut(p, " ")
		if n, err := strconv.Atoi(pid); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
}

// AtAnyMoment ends servers by SIGHUP and by signals that they cannot or do not handle, and
// waits until nothing of each server is left. It sends each signal to that many servers:
// to the first two, one in each sandbox mode, when the daemons of [Daemons] run; to the
// others at a random moment, perhaps before their command has started.
//
// Start returns an MCP server's command, whose folder is unset and whose
// environment lacks PATH and HOME.
func AtAnyMoment(t *testing.T, moments int, start func(*testing.T) *exec.Cmd) {
	begun := time.Now()
	s := startVictim(t, start(t), endModes[0])
	s.awaitUp(t)
	usual := time.Since(begun)
	s.end(t, syscall.SIGKILL)
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT} {
		for n := range moments {
			t.Run(sig.String(), func(t *testing.T) {
				t.Parallel()
				s := startVictim(t, start(t), endModes[n%len(endModes)])
				if n < len(endModes) {
					s.awaitUp(t)
				} else {
					<-time.After(mathrand.N(2 * usual))
				}
				s.end(t, sig)
			})
		}
	}
}

var endModes = []string{"danger-full-access", "workspace-write"}
