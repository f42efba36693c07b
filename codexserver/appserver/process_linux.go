package appserver

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownSession starts a process in its own session, without access to the user's terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// dieWithParent starts a process in its own session, which dies with the thread that
// started it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
}

// sweep kills the processes that an app-server left behind, if it had no keeper or the
// keeper was killed. Codex runs commands in sessions of their own, so that killing its
// process group does not end them. They are found by mark, an environment variable that
// they inherited.
func sweep(mark string) {
	// A process may start another before it is killed, and during an exec it has no
	// environment for a moment. So two rounds without a find are needed.
	for none := 0; none < 2; {
		if killMarked([]byte(mark)) == 0 {
			none++
		} else {
			none = 0
		}
		pause := time.NewTimer(2 * time.Millisecond)
		<-pause.C
	}
}

func killMarked(mark []byte) (killed int) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0
	}
	for _, dir := range dirs {
		if !hasEnv(dir, mark) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		// Checked again: before the descriptor was open, the id could change its process.
		if hasEnv(dir, mark) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
			killed++
		}
		_ = unix.Close(fd)
	}
	return killed
}

// hasEnv reports whether the live process of a /proc folder has the variable.
func hasEnv(dir string, mark []byte) bool {
	env, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return false
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(v, mark) {
			return true
		}
	}
	return false
}
