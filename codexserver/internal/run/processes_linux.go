package run

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process is a process as /proc/PID/stat describes it.
type process struct {
	pid, parent int
	session     int    // the PID of the leader of its session, which may have ended
	start       uint64 // in clock ticks since the system's start; later processes with its PID have another
	dead        bool   // it ended and is not reaped yet
}

// processes returns the system's processes. It may miss a process that starts meanwhile.
func processes() (all []process) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil {
			if p, ok := readProcess(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

func readProcess(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parse(pid, string(b))
}

// parse reads "pid (name) state ppid …"; the name may hold anything.
func parse(pid int, stat string) (process, bool) {
	const startField = 19
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= startField {
		return process{}, false
	}
	parent, err1 := strconv.Atoi(fields[1])
	session, err2 := strconv.Atoi(fields[3])
	start, err3 := strconv.ParseUint(fields[startField], 10, 64)
	return process{pid, parent, session, start, fields[0] == "Z" || fields[0] == "X"}, err1 == nil && err2 == nil &&
		err3 == nil
}

// descendants returns the processes among all for which first is true and those that descend from
// them, without dead ones.
func descendants(all []process, first func(process) bool) (found []process) {
	in := map[int]bool{}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !in[p.pid] && (in[p.parent] || first(p)) {
				in[p.pid], grown = true, true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(p process) bool { return p.dead || !in[p.pid] })
}

// command returns the processes of the command that a launcher, p, has started: those for which first is true, and their
// descendants. If first is wrong, these can be all. So none is among them that began before p or belongs to another user.
func (p process) command(first func(process) bool) []process {
	return slices.DeleteFunc(descendants(processes(), first), func(one process) bool { return !p.later(one) })
}

// later reports whether other belongs to this user and began after p, or in the same tick. No process is later than one
// that could not be read.
func (p process) later(other process) bool {
	return p.pid > 0 && other.start >= p.start && userOf(other.pid) == os.Getuid()
}

// userOf returns the user of a process, or -1 when it has ended. A process chooses who owns its folder in /proc.
func userOf(pid int) int {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, line, _ := strings.Cut(string(b), "\nUid:\t") // a name has no line ends there
	text, _, _ := strings.Cut(line, "\t")
	if user, err := strconv.Atoi(text); err == nil {
		return user
	}
	return -1
}

// end kills the processes that find finds, until there are none. One whose parent has died may still be dying when find
// no longer finds it.
func end(find func() []process) {
	stopAll(find)
	deadline, pause := time.Now().Add(lastGrace), time.Millisecond
	var killed []process
	for left := find(); (len(left) > 0 || slices.ContainsFunc(killed, process.alive)) &&
		time.Now().Before(deadline); left = find() {
		signalAll(left, unix.SIGKILL)
		killed = append(killed, left...)
		time.Sleep(pause)
		pause = min(2*pause, 100*time.Millisecond) // the rest cannot be killed, but may end
	}
}

// stopAll stops processes until it finds no new ones. If they were killed at once, a running
// process could start others in their place.
func stopAll(find func() []process) {
	deadline := time.Now().Add(time.Second)
	stopped := map[process]bool{}
	for fresh := true; fresh && time.Now().Before(deadline); {
		fresh = false
		for _, p := range find() {
			key := process{pid: p.pid, start: p.start}
			if !stopped[key] {
				p.signal(unix.SIGSTOP)
				stopped[key], fresh = true, true
			}
		}
	}
}

func signalAll(all []process, sig unix.Signal) {
	for _, p := range all {
		p.signal(sig)
	}
}

func (p process) alive() bool {
	now, is := readProcess(p.pid)
	return is && now.start == p.start && !now.dead
}

// signal sends a signal to p, but not to a later process with its PID.
func (p process) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return // gone
	}
	defer unix.Close(fd)
	if now, ok := readProcess(p.pid); ok && now.start == p.start {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// killHidden kills children that a /proc mounted with hidepid does not show, or that have become another user. Their
// children then become children of this process.
func killHidden() {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		for field := range bytes.FieldsSeq(b) {
			pid, _ := strconv.Atoi(string(field))
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				continue // gone
			}
			// it is still a child
			if unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil) == nil {
				_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			}
			_ = unix.Close(fd)
		}
	}
}
