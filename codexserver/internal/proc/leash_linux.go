package proc

import (
	"os"
	"os/exec"
	"strconv"
)

// leashFD is the descriptor that identifies a command's processes. It is high, so that
// scripts do not use it for something else.
const leashFD = 99

// leash identifies the processes of a command that has no keeper. Each inherits the
// writing end of a pipe, even a daemon that has left the session and whose parents are
// gone. A process that closes it cannot be found.
type leash struct {
	read, write *os.File
	link        string // the target of the descriptor's link in /proc
}

func newLeash(cmd *exec.Cmd) (*leash, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l := &leash{read: r, write: w}
	l.link, _ = os.Readlink("/proc/self/fd/" + strconv.Itoa(int(w.Fd()))) // "" finds no process
	cmd.ExtraFiles = make([]*os.File, leashFD-2)
	cmd.ExtraFiles[leashFD-3] = w
	return l, nil
}

// started closes the end that now belongs to the command.
func (l *leash) started() { l.write.Close() }

// drop closes the pipe. It must stay open until the command has ended, because a new pipe
// could get its number.
func (l *leash) drop() {
	l.write.Close()
	l.read.Close()
}

// holds reports whether a process has the pipe. A nil leash holds no process.
func (l *leash) holds(pid int) bool {
	if l == nil {
		return false
	}
	link, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/" + strconv.Itoa(leashFD))
	return err == nil && link == l.link
}
