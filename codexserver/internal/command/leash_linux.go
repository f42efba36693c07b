package command

import (
	"os"
	"os/exec"
	"strconv"
)

// leashFD is the descriptor by which a command's processes are known again. It
// is high, so that no script uses it for something else.
const leashFD = 99

// leash marks the processes of a command that has no keeper: each inherits the
// writing end of a pipe, also a daemon that has left the session and whose
// parents are gone. Only one that closes what it inherits is lost.
type leash struct {
	read, write *os.File
	link        string // what /proc says of the descriptor
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

// drop forgets the command. The pipe must live until then: its number may be
// used again afterwards.
func (l *leash) drop() {
	l.write.Close()
	l.read.Close()
}

// holds reports whether a process is on the leash. Nil holds none.
func (l *leash) holds(pid int) bool {
	if l == nil {
		return false
	}
	link, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/" + strconv.Itoa(leashFD))
	return err == nil && link == l.link
}
