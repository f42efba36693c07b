package shared_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestDescendant connects to the server from its own commands, also from orphans, and asks it for a link. What
// they want does not matter: they are refused before they say it.
func TestDescendant(t *testing.T) {
	p := newPlace(t)
	c, self := p.must(""), "'"+os.Args[0]+"'"
	for name, tt := range map[string]struct{ line, want string }{
		"child":   {"run " + self, "is a command of the server"},
		"session": {"run setsid -w " + self, "is a command of the server"},
		"orphan":  {"run (setsid " + self + " orphan & ) | cat", "is a command of the server"}, // which waits for its end
		"sandbox": {"run setpriv --no-new-privs " + self, "is in another sandbox"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := say(t, c, tt.line); !strings.Contains(got, tt.want) || strings.Contains(got, "connected") || strings.Contains(got, "LINK") {
				t.Errorf("got %s", got)
			}
		})
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), p.env...), role+"=client")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "connected to") {
		t.Errorf("a process that the server did not start: %s, %v", out, err)
	}
}

// TestOtherUser connects as another user, to whom the folder and the socket are open.
func TestOtherUser(t *testing.T) {
	if !boxtest.IsRoot() {
		t.Skip("only root can run a program as another user")
	}
	p := newPlace(t)
	p.must("")
	must.OK(t, errors.Join(os.Chmod(filepath.Join(p.path, "test.sock"), 0o666), os.Chmod(p.path, 0o711)))
	if got := asUser(p.path, "test.sock"); !strings.Contains(got, `"refused":"user 54321 is not the server's"`) {
		t.Errorf("another user got %s", got)
	}
}

// asUser connects to a socket as another user, and returns what that user is told.
func asUser(folder, socket string) string {
	answer := make(chan string)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with this goroutine
		// The other user may not be able to pass the folders above, such as that of TMPDIR.
		err := errors.Join(syscall.Unshare(syscall.CLONE_FS), syscall.Chdir(folder))
		syscall.RawSyscall(syscall.SYS_SETRESUID, 54321, 54321, 54321)
		var fd int
		if err == nil {
			fd, err = syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		}
		if err == nil {
			err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: socket})
		}
		b := make([]byte, 1<<10)
		n, _ := syscall.Read(fd, b)
		answer <- fmt.Sprintf("%s %v", b[:max(n, 0)], err)
	}()
	return <-answer
}
