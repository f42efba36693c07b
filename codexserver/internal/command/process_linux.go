package command

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/proctable"
	"golang.org/x/sys/unix"
)

// awaitExit returns when the process has ended, and leaves it to be reaped:
// until then its id, and with it its group's and its session's, is not used again.
func awaitExit(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// killAll kills the session of leader, everything that descends from it and everything on
// its leash, and waits until all of it is dead.
//
// A process that has left the session is also found by its parents. So they are stopped
// first: killed, they would leave it to init, and only the leash would show whose it was.
func killAll(leader int, l *leash) {
	mine := family{leader: leader, leash: l, known: map[int]bool{}}
	left := mine.members()
	for fresh := len(left) > 0; fresh; left = mine.members() {
		fresh = false
		for _, pid := range left {
			if !mine.known[pid] {
				_ = unix.Kill(pid, unix.SIGSTOP)
				mine.known[pid], fresh = true, true
			}
		}
	}
	_ = unix.Kill(-leader, unix.SIGKILL) // in case /proc shows nothing
	for deadline := time.Now().Add(killGrace); len(left) > 0 && time.Now().Before(deadline); left = mine.members() {
		killEach(left, time.Until(deadline))
	}
}

// killLost kills what can be found of a command whose keeper was killed: its processes
// have another parent now. These are the command's session, unless leader is 0, and those
// of the processes that write to its output, with all that descends from them. It is
// never this process's session, which may have a pipe of the command as descriptor 1 or 2
// itself.
func killLost(leader int, output *pipes) {
	sessions := map[int]bool{}
	if leader > 0 {
		sessions[leader] = true
	}
	links := output.links()
	self, _ := proctable.Read(os.Getpid())
	for _, p := range proctable.List(0) {
		if p.Session == self.Session {
			continue
		}
		for _, fd := range []string{"1", "2"} {
			link, err := os.Readlink("/proc/" + strconv.Itoa(p.PID) + "/fd/" + fd)
			if err == nil && slices.Contains(links, link) {
				sessions[p.Session] = true
			}
		}
	}
	for session := range sessions {
		killAll(session, nil)
	}
}

// links are what /proc says of the descriptors of both streams.
func (p *pipes) links() (links []string) {
	for _, r := range p.readers {
		if info, err := r.Stat(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				links = append(links, "pipe:["+strconv.FormatUint(stat.Ino, 10)+"]")
			}
		}
	}
	return links
}

// killEach kills the processes and waits until they are dead.
func killEach(pids []int, wait time.Duration) {
	deadline := time.Now().Add(wait)
	var fds []unix.PollFd
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // gone
		}
		defer unix.Close(fd)
		if unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
			fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	for len(fds) > 0 {
		ms := time.Until(deadline).Milliseconds()
		if ms <= 0 {
			return
		}
		if _, err := unix.Poll(fds, int(ms)); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		alive := fds[:0]
		for _, fd := range fds {
			if fd.Revents == 0 {
				alive = append(alive, fd)
			}
		}
		fds = alive
	}
}

// family is how the processes of a command are distinguished from others.
type family struct {
	leader int
	leash  *leash
	known  map[int]bool // found before
}

// members are the live processes of the leader's session and group, those on its
// leash, those that are known, and the descendants of all of them.
func (f family) members() []int {
	oldest := 0
	if proctable.Last() >= f.leader { // ids have not wrapped around since
		oldest = f.leader
	}
	all := proctable.List(oldest)
	found := map[int]bool{f.leader: true}
	for _, p := range all {
		found[p.PID] = found[p.PID] || p.Session == f.leader || p.Group == f.leader || f.known[p.PID] || f.leash.holds(p.PID)
	}
	for grew := true; grew; {
		grew = false
		for _, p := range all {
			if !found[p.PID] && found[p.Parent] {
				found[p.PID], grew = true, true
			}
		}
	}
	var live []int
	for _, p := range all {
		if found[p.PID] && !p.Dead {
			live = append(live, p.PID)
		}
	}
	return live
}

// SealDescriptors keeps what this process inherited itself from its commands. A
// program calls it once, before it opens anything; standard input, output and
// error stay as they are.
func SealDescriptors() error {
	return unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}
