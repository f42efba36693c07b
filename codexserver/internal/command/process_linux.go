package command

import (
	"bytes"
	"errors"
	"math"
	"os"
	"os/exec"
	"strconv"
	"time"

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

// killAll kills the session of leader, everything that descends from it and
// everything on its leash, and waits until all of it is dead.
//
// A process that has left the session is also found by its parents. So they are
// stopped first: killed, they would leave it to init, and nothing would tell
// whose it was but the leash.
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
	_ = unix.Kill(-leader, unix.SIGKILL) // should /proc tell nothing
	for deadline := time.Now().Add(killGrace); len(left) > 0 && time.Now().Before(deadline); left = mine.members() {
		killEach(left, time.Until(deadline))
	}
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

// lastPID is the id that was given to a process or thread last, 0 if unknown.
func lastPID() int {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) == 0 {
		return 0
	}
	pid, _ := strconv.Atoi(string(fields[len(fields)-1]))
	return pid
}

// procStat is what /proc/PID/stat says of a process.
type procStat struct {
	pid, parent, group, session int
	dead                        bool
}

// family is how the processes of a command are told from others.
type family struct {
	leader int
	leash  *leash
	known  map[int]bool // found before
}

// members are the live processes of the leader's session and group, those on its
// leash, those that are known, and the descendants of all of them.
func (f family) members() []int {
	all := processes(f.leader)
	found := map[int]bool{f.leader: true}
	for _, p := range all {
		found[p.pid] = found[p.pid] || p.session == f.leader || p.group == f.leader || f.known[p.pid] || f.leash.holds(p.pid)
	}
	for grew := true; grew; {
		grew = false
		for _, p := range all {
			if !found[p.pid] && found[p.parent] {
				found[p.pid], grew = true, true
			}
		}
	}
	var live []int
	for _, p := range all {
		if found[p.pid] && !p.dead {
			live = append(live, p.pid)
		}
	}
	return live
}

// processes are those that may be younger than leader, and itself.
func processes(leader int) []procStat {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	inOrder := lastPID() >= leader // ids have not begun anew since
	var all []procStat
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || inOrder && pid < leader {
			continue
		}
		b, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // ended meanwhile
		}
		if p, ok := parseStat(b); ok {
			all = append(all, p)
		}
	}
	return all
}

// parseStat reads "pid (name) state ppid pgrp session …"; the name may hold anything.
func parseStat(b []byte) (procStat, bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return procStat{}, false
	}
	fields := bytes.Fields(b[end+1:])
	if len(fields) < 4 {
		return procStat{}, false
	}
	var p procStat
	p.dead = fields[0][0] == 'Z' || fields[0][0] == 'X'
	for i, to := range map[int]*int{1: &p.parent, 2: &p.group, 3: &p.session} {
		n, err := strconv.Atoi(string(fields[i]))
		if err != nil {
			return procStat{}, false
		}
		*to = n
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(b[:open])))
	p.pid = pid
	return p, err == nil
}

// SealDescriptors keeps what this process inherited itself from its commands. A
// program calls it once, before it opens anything; standard input, output and
// error stay as they are.
func SealDescriptors() error {
	return unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}
