package run_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// socket sends two sockets to the server, in a launcher: one whose bytes come back until it is closed, which the server
// says, and one that stays.
func socket(to *os.File) error {
	for i := range 2 {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Sendmsg(int(to.Fd()), []byte{0}, unix.UnixRights(pair[1]), nil, 0)
		}
		if err != nil {
			return err
		}
		unix.Close(pair[1])
		b := []byte("x")
		if _, err := unix.Write(pair[0], b); err != nil {
			return err
		}
		if n, err := unix.Read(pair[0], b); n != 1 || err != nil {
			return fmt.Errorf("%d bytes: %w", n, err)
		}
		if i == 1 {
			return nil
		}
		unix.Close(pair[0])
		if n, err := to.Read(b); n != 1 || b[0] != 0 || err != nil {
			return errors.Join(fmt.Errorf("%d bytes", n), err)
		}
	}
	return nil
}

// socketed is a confinement whose launcher sends sockets.
type socketed struct{ fail error }

func (s socketed) Apply(cmd *exec.Cmd) (string, error) {
	null, err := os.Open(os.DevNull)
	cmd.ExtraFiles = []*os.File{null}
	return socketing, errors.Join(err, s.fail)
}

// TestSockets serves the sockets of a command until it ends, whatever ends it. When Run returns, nothing is served.
func TestSockets(t *testing.T) {
	for name, tt := range map[string]struct {
		argv    []string
		timeout time.Duration
		fail    error
		served  int
		code    int
	}{
		"a command that ends":   {[]string{"sh", "-c", "exit 3"}, time.Minute, nil, 2, 3},
		"one that does not":     {[]string{"sleep", "1000"}, 100 * time.Millisecond, nil, 2, run.TimeoutExitCode},
		"one that cannot start": {[]string{"/etc/passwd"}, time.Minute, nil, 0, 0},
		"one that is not tried": {[]string{"true"}, time.Minute, errors.New("no"), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var s run.Starter
			defer s.Close()
			begun, ended := make(chan bool, 9), make(chan bool, 9)
			res, err := s.Run(t.Context(), run.Spec{
				Argv: tt.argv, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Timeout: tt.timeout, Confinement: socketed{tt.fail},
				Sockets: func(_ context.Context, c net.Conn) {
					begun <- true
					_, _ = io.Copy(c, c)
					ended <- true
				},
			}, nil)
			must.Equal(t, "begun", tt.served, len(begun))
			must.Equal(t, "ended", tt.served, len(ended))
			must.Equal(t, "the exit code", tt.code, res.ExitCode)
			if failed := strings.Contains(name, "cannot") || strings.Contains(name, "not tried"); failed != (err != nil) {
				t.Error(err)
			}
		})
	}
}
