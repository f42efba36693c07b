package run

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// identity distinguishes a process from earlier and later ones with the same PID.
type identity struct {
	PID   int
	Start uint64 // in clock ticks since the system's start
}

// entry is a process as /proc/PID/stat describes it.
type entry struct {
	identity
	Parent int
	// Session is the PID of the leader of its session, which may have ended.
	Session int
	// Dead is true for a process that ended and is not reaped yet.
	Dead bool
}

// processes returns the system's processes. It may miss a process that starts meanwhile.
func processes() []entry {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var all []entry
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readEntry(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

// readEntry returns one process, and false if there is none.
func readEntry(pid int) (entry, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return entry{}, false
	}
	return parse(b)
}

// parse reads "pid (name) state ppid …"; the name may hold anything.
func parse(b []byte) (entry, bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return entry{}, false
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(b[:open])))
	if err != nil {
		return entry{}, false
	}
	const startField = 19
	fields := bytes.Fields(b[end+1:])
	if len(fields) <= startField {
		return entry{}, false
	}
	p := entry{identity: identity{PID: pid}, Dead: fields[0][0] == 'Z' || fields[0][0] == 'X'}
	if p.Parent, err = strconv.Atoi(string(fields[1])); err != nil {
		return entry{}, false
	}
	if p.Session, err = strconv.Atoi(string(fields[3])); err != nil {
		return entry{}, false
	}
	p.Start, err = strconv.ParseUint(string(fields[startField]), 10, 64)
	return p, err == nil
}

// descendants returns the processes among all that descend from root, without
// root itself and without dead ones.
func descendants(all []entry, root int) []entry {
	children := map[int][]entry{}
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p)
	}
	var found []entry
	seen := map[int]bool{root: true}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, p := range children[queue[0]] {
			if seen[p.PID] {
				continue
			}
			seen[p.PID] = true
			queue = append(queue, p.PID)
			if !p.Dead {
				found = append(found, p)
			}
		}
	}
	return found
}

// signal sends a signal to p, but not to a later process with its PID.
func (p entry) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return // gone
	}
	defer unix.Close(fd)
	if now, ok := readEntry(p.PID); ok && now.identity == p.identity {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}
