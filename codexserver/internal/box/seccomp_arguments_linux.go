//go:build amd64 || arm64

package box

import "golang.org/x/sys/unix"

// A filter sees the numbers among the arguments of a system call, but not the memory
// behind pointers. The filters here deny calls by their numbers. A call that takes its
// numbers from memory fails as if this kernel lacked it, so that libraries fall back to
// its predecessor.

// sharedIPC are the calls of System V IPC and of POSIX message queues. They reach other
// processes of the user through well-known keys and names.
var sharedIPC = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// attributes are the calls that change the mode, the owner, the times and the extended
// attributes of a file, which Landlock does not see. A filter cannot distinguish files, so it
// denies these calls only where no file is writable.
var attributes = []uint32{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
}

// argument is an argument of a system call, by its position.
type argument struct{ nr, arg uint32 }

const setID = unix.S_ISUID | unix.S_ISGID

// controls are commands of ioctl that change a file through a descriptor that is only for
// reading, or type into a terminal. Numbers without a name are from the kernel's headers.
var controls = []uint32{
	unix.TIOCSTI, unix.TIOCLINUX,
	unix.FS_IOC_SETFLAGS, 0x40046602, // the second is the one for 32 bits
	0x401c5820,             // FS_IOC_FSSETXATTR
	0x40087602, 0x40047602, // FS_IOC_SETVERSION
	0x40086604,                // EXT4_IOC_SETVERSION
	0x40047211,                // FAT_IOCTL_SET_ATTRIBUTES
	unix.FS_IOC_ENABLE_VERITY, // makes the file read-only for good
	0x800c6613,                // FS_IOC_SET_ENCRYPTION_POLICY
	0x50009401, 0x50009417,    // BTRFS_IOC_SNAP_CREATE, _V2
	0x5000940e, 0x50009418, // BTRFS_IOC_SUBVOL_CREATE, _V2
	0x5000940f, 0x5000943f, // BTRFS_IOC_SNAP_DESTROY, _V2
	0x4008941a,     // BTRFS_IOC_SUBVOL_SETFLAGS
	0x8901, 0x8902, // FIOSETOWN, SIOCSPGRP: signals to another process
}

// limitArguments denies calls by their arguments.
func limitArguments(bodies map[uint32]bpf, l limits) {
	for _, nr := range []uint32{unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM} {
		bodies[nr] = unless(equal{0, 0}) // the process to change; 0 is the caller
	}
	bodies[unix.SYS_PRLIMIT64] = ownLimits()
	bodies[unix.SYS_SETRLIMIT] = ifOneOf(0, []uint32{unix.RLIMIT_NPROC})
	bodies[unix.SYS_SETPRIORITY] = unless(equal{0, unix.PRIO_PROCESS}, equal{1, 0})
	bodies[unix.SYS_IOPRIO_SET] = unless(equal{0, 1}, equal{1, 0}) // IOPRIO_WHO_PROCESS
	newMode := []argument{{unix.SYS_FCHMOD, 1}, {unix.SYS_FCHMODAT, 2}, {unix.SYS_FCHMODAT2, 2}, {unix.SYS_MKNODAT, 2}}
	for _, call := range append(newMode, legacyMode...) {
		bodies[call.nr] = ifBits(call.arg, setID)
	}
	for _, call := range append(legacyOpen, argument{unix.SYS_OPENAT, 2}) { // its flags; the mode is next
		bodies[call.nr] = opening(call.arg, l&truncate != 0)
	}
	if l&inProcess == 0 {
		bodies[unix.SYS_OPENAT2] = denial(unix.ENOSYS)
	}
	for _, nr := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		bodies[nr] = ifBits(0, unix.CLONE_NEWUSER)
	}
	bodies[unix.SYS_CLONE3] = denial(unix.ENOSYS)
	bodies[unix.SYS_IOCTL] = ifOneOf(1, controls)
}

// equal is the value that an argument must have. The kernel uses only the low 32 bits of
// each argument that is limited here, so the filter ignores the others.
type equal struct{ arg, value uint32 }

// unless denies a call unless all arguments have the wanted values.
func unless(wanted ...equal) (p bpf) {
	for _, want := range wanted {
		p.load(offsetArgs + want.arg*8)
		p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, want.value, 1, 0)
		p.deny(unix.EPERM)
	}
	p.allow()
	return p
}

// ownLimits denies prlimit64 for other processes, and changes of the limit of processes: a launcher
// starts commands with a lower soft limit than its own, see [run.Main], and it cannot lower their hard
// limit without losing its own.
func ownLimits() (p bpf) {
	p = unless(equal{0, 0})
	p = p[:len(p)-1] // instead of allowing the rest
	p.load(offsetArgs + 8)
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.RLIMIT_NPROC, 1, 0)
	p.allow()
	return append(p, withoutPointer(2)...)
}

// ifBits denies a call when an argument has one of the bits.
func ifBits(arg, bits uint32) (p bpf) {
	p.denyBits(arg, bits)
	p.allow()
	return p
}

// ifOneOf denies a call when an argument has one of the values.
func ifOneOf(arg uint32, values []uint32) (p bpf) {
	p.load(offsetArgs + arg*8)
	for i, value := range values {
		p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, value, uint8(len(values)-i), 0)
	}
	p.allow()
	p.deny(unix.EPERM)
	return p
}

// opening denies making a setuid or setgid file. With truncate it also denies truncating
// a file that is opened for reading, which Landlock does not see before its third version.
// arg is the position of the flags.
func opening(arg uint32, truncate bool) (p bpf) {
	if truncate {
		p.load(offsetArgs + arg*8)
		p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, unix.O_TRUNC|unix.O_ACCMODE, 0, 0)
		p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.O_TRUNC|unix.O_RDONLY, 0, 1)
		p.deny(unix.EACCES)
	}
	// Without one of these flags the kernel ignores the mode.
	p.load(offsetArgs + arg*8)
	p.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY, 1, 0)
	p.allow()
	p.denyBits(arg+1, setID)
	p.allow()
	return p
}

// denyBits denies a call when an argument has one of the bits. Otherwise the program
// continues.
func (p *bpf) denyBits(arg, bits uint32) {
	p.load(offsetArgs + arg*8)
	p.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, bits, 0, 1)
	p.deny(unix.EPERM)
}
