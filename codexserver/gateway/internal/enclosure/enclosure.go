// Package enclosure starts a program, and all that it starts, in a part of the system.
//
//	Enclosure.Start ──▶ this program again, in new namespaces: it mounts, drops capabilities
//	                ──▶ this program again: the first process, which collects ended ones
//	                ──▶ the program
//
// The program needs to know nothing of this.
package enclosure

import "errors"

// Enclosure is the part of the system that a program, and all that it starts, can use. It
// applies whether or not the program's commands are confined.
//
//   - Everything but Writable is read-only. Hidden looks missing or empty.
//   - Temp is mounted as /tmp and /var/tmp. /dev/shm is the enclosure's own.
//   - Its processes do not see others, so they cannot signal them or read their command
//     lines, memory, environment and open files.
//   - It has no capabilities, cannot get any, and cannot undo this. Root keeps one, which
//     confining its own commands needs.
//
// It does not limit the network, including the sockets of services that run as the same
// user, and does not limit memory, processor time and disk space. It needs user, mount,
// PID and IPC namespaces of Linux.
type Enclosure struct {
	// Writable are folders. Hidden are folders and files, which need not exist. A
	// writable folder in a hidden one is visible; a hidden one in a writable one is
	// hidden. All are absolute, clean and free of symbolic links.
	Writable, Hidden []string
	// Temp is one of the folders in Writable, or lies in one.
	Temp string
	// Life bounds how long the enclosure lasts. Nil is no bound.
	Life *Life
}

// ErrUnavailable is wrapped by errors that report that this system can make no enclosures.
var ErrUnavailable = errors.New("this system cannot keep several users apart")
