package jsonrpc

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestCommandSettings checks what Command sets of a command, and that it keeps what its caller has
// set. /bin/true runs in the session that the caller wants: it could not be started in a group of its own.
func TestCommandSettings(t *testing.T) {
	const second = time.Second
	for name, tt := range map[string]struct {
		grace, delay time.Duration
		attr         *syscall.SysProcAttr
		wantGrace    time.Duration
		wantDelay    time.Duration
		wantAttr     syscall.SysProcAttr
	}{
		"nothing":   {wantGrace: 2 * second, wantDelay: 2 * second, wantAttr: syscall.SysProcAttr{Setpgid: true}},
		"a grace":   {grace: second, wantGrace: second, wantDelay: second, wantAttr: syscall.SysProcAttr{Setpgid: true}},
		"a delay":   {delay: 3 * second, wantGrace: 2 * second, wantDelay: 3 * second, wantAttr: syscall.SysProcAttr{Setpgid: true}},
		"a signal":  {attr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, wantGrace: 2 * second, wantDelay: 2 * second, wantAttr: syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}},
		"a session": {attr: &syscall.SysProcAttr{Setsid: true}, wantGrace: 2 * second, wantDelay: 2 * second, wantAttr: syscall.SysProcAttr{Setsid: true}},
	} {
		cmd := exec.Command("true")
		cmd.WaitDelay, cmd.SysProcAttr = tt.delay, tt.attr
		tr, err := Command(cmd, tt.grace)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c := tr.(*lines).c.(*child)
		if c.grace != tt.wantGrace || cmd.WaitDelay != tt.wantDelay {
			t.Errorf("%s: a grace of %v and a delay of %v", name, c.grace, cmd.WaitDelay)
		}
		if got, want := *cmd.SysProcAttr, tt.wantAttr; got.Setpgid != want.Setpgid || got.Setsid != want.Setsid || got.Pdeathsig != want.Pdeathsig {
			t.Errorf("%s: the child starts with %+v", name, got)
		}
		if err := tr.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
