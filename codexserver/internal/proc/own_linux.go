package proc

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// awaitExit returns when the process has ended. It does not reap it: until that is done,
// the id of the process, its group and its session is not used again.
func awaitExit(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// killAll kills the session of leader, its descendants and the processes that have the
// leash, and waits until they are dead.
//
// A process that has left the session is found by its parent. So killAll first stops all
// processes: if it killed a parent, the child would become one of init, and could be found
// only by the leash.
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
	_ = unix.Kill(-leader, unix.SIGKILL) // in case /proc does not show the processes
	for deadline := time.Now().Add(killGrace); len(left) > 0 && time.Now().Before(deadline); left = mine.members() {
		killEach(left, time.Until(deadline))
	}
}

// killLost kills the processes of a command whose keeper was killed, as far as it can find
// them; they have another parent now. It kills the command's session, unless leader is 0,
// the sessions of processes that write to its output, and all their descendants. It never
// kills this process's session, which may have a pipe of the command as descriptor 1 or 2.
func killLost(leader int, output *pipes) {
	sessions := map[int]bool{}
	if leader > 0 {
		sessions[leader] = true
	}
	links := output.links()
	self, _ := readEntry(os.Getpid())
	for _, p := range processes(0) {
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

// links returns the targets of the links in /proc for descriptors of both streams.
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

// family identifies the processes of a command.
type family struct {
	leader int
	leash  *leash
	known  map[int]bool // found before
}

// members returns the live processes of the leader's session and group, those that have
// the leash, the known ones, and the descendants of all of them.
func (f family) members() []int {
	oldest := 0
	if lastPID() >= f.leader { // ids have not wrapped around since the start
		oldest = f.leader
	}
	all := processes(oldest)
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

// SealDescriptors prevents commands from inheriting the descriptors that this process
// inherited, except standard input, output and error. A program calls it once, before it
// opens any file.
func SealDescriptors() error {
	return unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}
