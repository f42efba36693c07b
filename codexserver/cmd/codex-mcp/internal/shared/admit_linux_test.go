package shared_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDescendant connects to the server from its own commands, also from orphans.
func TestDescendant(t *testing.T) {
	p := newPlace(t)
	c := p.must("1", "")
	for name, line := range map[string]string{
		"child":   "run " + os.Args[0],
		"session": "run setsid -w " + os.Args[0],
		"orphan":  "run (setsid " + os.Args[0] + " later & ) ; sleep 0; cat", // cat waits for the orphan's end
	} {
		t.Run(name, func(t *testing.T) {
			line := strings.Replace(line, "; cat", "| cat", 1)
			if got := say(t, c, line); !strings.Contains(got, "is a command of the server") || strings.Contains(got, "connected") {
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
	if os.Getuid() != 0 {
		t.Skip("only root can run a program as another user")
	}
	p := newPlace(t)
	p.must("1", "")
	socket := filepath.Join(p.path, "test.sock")
	for path, mode := range map[string]os.FileMode{socket: 0o666, p.path: 0o711, filepath.Dir(p.path): 0o711} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("python3", "-c", `
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b'{"want":"serve"}\n')
while b := s.recv(4096): print(b.decode(), end="")
`, socket)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
	out, err := cmd.CombinedOutput()
	if !strings.Contains(string(out), `"refused":"user 54321 is not the server's"`) {
		t.Errorf("another user got %s, %v", out, err)
	}
}
