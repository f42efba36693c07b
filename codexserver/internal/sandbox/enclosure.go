package sandbox

// Enclosure is what a program, and all that it starts, has of the system. It holds
// whether or not its commands are confined.
//
//   - What is not Writable is read-only, and what is Hidden is not there.
//   - Temp is /tmp and /var/tmp, and /dev/shm is its own.
//   - Its processes see no others, and so cannot signal them or read their command
//     lines. They cannot read the memory, the environment and the files of others.
//   - It has no capabilities, cannot get any, and cannot undo this. Root keeps one,
//     without which its own commands could not be confined.
//
// What is left open is the network, with the sockets of services that run as the same
// user, and what is used up. It needs user, mount, PID and IPC namespaces of Linux.
type Enclosure struct {
	// Writable are folders. Hidden are folders and files, which need not exist. A
	// folder that is writable and lies in a hidden one is there, and the other way
	// round. All are absolute, clean and free of symbolic links.
	Writable, Hidden []string
	// Temp is a folder in Writable, or in one of those.
	Temp string
}
