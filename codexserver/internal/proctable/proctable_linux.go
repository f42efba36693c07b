// Package proctable reads the processes of the system from /proc.
package proctable

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Identity distinguishes a process from earlier and later ones with the same PID.
type Identity struct {
	PID   int
	Start uint64 // in clock ticks since the system's start
}

// Process is a process as /proc/PID/stat describes it.
type Process struct {
	Identity
	Parent, Group, Session int
	// Dead is true for a process that ended and is not reaped yet.
	Dead bool
}

// List returns the system's processes whose PID is at least least. It may miss a process
// that starts meanwhile.
func List(least int) []Process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var all []Process
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid >= least {
			if p, ok := Read(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

// Last returns the last PID that a process or thread was given, or 0 if it is unknown.
func Last() int {
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

// Read returns one process, and false if there is none.
func Read(pid int) (Process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, false
	}
	return parse(b)
}

// parse reads "pid (name) state ppid pgrp session …"; the name may hold anything.
func parse(b []byte) (Process, bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return Process{}, false
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(b[:open])))
	if err != nil {
		return Process{}, false
	}
	const startField = 19
	fields := bytes.Fields(b[end+1:])
	if len(fields) <= startField {
		return Process{}, false
	}
	p := Process{Identity: Identity{PID: pid}, Dead: fields[0][0] == 'Z' || fields[0][0] == 'X'}
	for i, to := range []*int{&p.Parent, &p.Group, &p.Session} {
		if *to, err = strconv.Atoi(string(fields[1+i])); err != nil {
			return Process{}, false
		}
	}
	p.Start, err = strconv.ParseUint(string(fields[startField]), 10, 64)
	return p, err == nil
}

// Descendants returns the processes among all that descend from root, without
// root itself and without dead ones.
func Descendants(all []Process, root int) []Process {
	children := map[int][]Process{}
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p)
	}
	var found []Process
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

// Signal sends a signal to p, but not to a later process with its PID.
func (p Process) Signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return // gone
	}
	defer unix.Close(fd)
	if now, ok := Read(p.PID); ok && now.Identity == p.Identity {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}
