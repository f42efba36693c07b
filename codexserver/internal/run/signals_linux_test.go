package run_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// TestSignalsOfCommands starts servers whose host ignores or blocks signals: their commands begin with the usual action
// of each, and none blocked.
func TestSignalsOfCommands(t *testing.T) {
	const none = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
	const state = "grep\x01-E\x01^Sig(Blk|Ign)\x01/proc/self/status"
	for _, tt := range []struct {
		name    string
		ignored string // names for the shell
		blocked []unix.Signal
		control string // what a child of that host has
	}{
		{"the usual ones", "", nil, none},
		{"nohup", "HUP", nil, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\n"},
		{"in the background of a script", "INT QUIT", nil, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000006\n"},
		{"of a terminal", "TSTP TTIN TTOU CONT", nil, "SigBlk:\t0000000000000000\nSigIgn:\t00000000003a0000\n"},
		{"all that can be", "HUP INT QUIT USR1 USR2 PIPE ALRM TERM TSTP TTIN TTOU XFSZ WINCH", []unix.Signal{
			unix.SIGHUP, unix.SIGINT, unix.SIGUSR1, unix.SIGALRM, unix.SIGTERM, unix.SIGCHLD, unix.SIGCONT, unix.SIGTSTP,
		}, "SigBlk:\t00000000000b6203\nSigIgn:\t0000000009387a07\n"},
		{"blocked", "", []unix.Signal{unix.SIGALRM, unix.SIGUSR1},
			"SigBlk:\t0000000000002200\nSigIgn:\t0000000000000000\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			child := func(program string, args ...string) string {
				trap := ""
				if tt.ignored != "" {
					trap = `trap "" ` + tt.ignored + "; "
				}
				cmd := exec.Command("/bin/sh", append([]string{"-c", trap + `exec "$0" "$@"`, program}, args...)...)
				cmd.Env = []string{"PATH=/usr/bin:/bin", serverVar + "=" + state}
				cmd.Stderr = os.Stderr
				return must.Get(outputBlocking(cmd, tt.blocked))(t)
			}
			words := strings.Split(state, "\x01")
			must.Equal(t, "signals of a child of the host", tt.control, child(words[0], words[1:]...))
			must.Equal(t, "signals of a command", none, child(os.Args[0]))
		})
	}
}

// outputBlocking returns the output of a command that begins with these signals blocked.
func outputBlocking(cmd *exec.Cmd, blocked []unix.Signal) (string, error) {
	var set, before unix.Sigset_t
	for _, sig := range blocked {
		set.Val[0] |= 1 << (sig - 1)
	}
	var out strings.Builder
	cmd.Stdout = &out
	runtime.LockOSThread()
	err := unix.PthreadSigmask(unix.SIG_SETMASK, &set, &before)
	if err == nil {
		err = cmd.Start()
		_ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	}
	runtime.UnlockOSThread()
	if err == nil {
		_ = cmd.Wait() // a server ends with 1
	}
	return out.String(), err
}
