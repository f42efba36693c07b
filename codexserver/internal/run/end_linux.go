package run

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// end kills the descendants of this process until gone is closed.
func end(gone <-chan struct{}) {
	mine := func() []entry { return descendants(processes(), os.Getpid()) }
	stopAll(mine)
	for pause := time.Millisecond; ; {
		signalAll(mine(), unix.SIGKILL)
		killHidden()
		select {
		case <-gone:
			return
		case <-time.After(pause):
		}
		if pause < 100*time.Millisecond { // the rest cannot be killed, but may end
			pause *= 2
		}
	}
}

// stopAll stops processes until it finds no new ones. If they were killed at once, a running
// process could start others in their place.
func stopAll(find func() []entry) {
	deadline := time.Now().Add(Grace / 2)
	stopped := map[identity]bool{}
	for fresh := true; fresh && time.Now().Before(deadline); {
		fresh = false
		for _, p := range find() {
			if !stopped[p.identity] {
				p.signal(unix.SIGSTOP)
				stopped[p.identity], fresh = true, true
			}
		}
	}
}

func signalAll(all []entry, sig unix.Signal) {
	for _, p := range all {
		p.signal(sig)
	}
}

// killHidden kills children that a /proc mounted with hidepid does not show. Their
// children then become children of this process.
func killHidden() {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		for field := range bytes.FieldsSeq(b) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				killChild(pid)
			}
		}
	}
}

// killChild kills the process pid if it is a child of this process.
func killChild(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // gone
	}
	defer unix.Close(fd)
	err = unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	if !errors.Is(err, unix.ECHILD) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}
