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

// ownSession keeps the user's terminal from Codex and from what it starts.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// dieWithParent is an own session whose leader dies with the thread that starts it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
}

// sweep kills what can be found of an app-server that has no keeper, or whose keeper was
// killed. Codex runs commands in sessions of their own, which the end of its group does
// not reach, and which have no owner once it is gone; they are known by an environment
// variable that they have inherited, mark.
func sweep(mark string) {
	// What is killed may have started another meanwhile, and one that is just
	// becoming another program has no environment for a moment.
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
		// Asked again, now that the id cannot become another's.
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
