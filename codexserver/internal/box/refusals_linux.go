//go:build amd64 || arm64

package box

import (
	"slices"

	"golang.org/x/sys/unix"
)

// A filter sees the numbers among the arguments of a system call, but not the memory behind pointers. The filters here
// deny calls by their numbers. A call that takes its numbers from memory fails as if this kernel lacked it, so that
// libraries fall back to its predecessor.

// refusal is what the kernel does in place of a system call, if all tests hold.
type refusal struct {
	action uint32
	tests  []test
}

// failing is the action that lets a call fail with an error, or not, with 0.
func failing(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

// test looks at the lower half of an argument, which is all that the kernel uses of most, or at the upper one.
type test struct {
	arg   uint32 // its position, with upper for the upper half
	op    op
	value uint32
}

const upper = 8

type op int

const (
	is op = iota
	isNot
	has   // one of the bits
	hasNo // all of the bits
)

// refusals returns what a filter refuses of each system call.
func refusals(l limits, thread uint32) map[uint32][]refusal {
	calls := make(map[uint32][]refusal, 128)
	do := func(action uint32, tests []test, numbers ...uint32) {
		for _, nr := range numbers {
			calls[nr] = append(calls[nr], refusal{action, tests})
		}
	}
	refuse := func(errno unix.Errno, tests []test, numbers ...uint32) { do(failing(errno), tests, numbers...) }
	deny := func(tests []test, numbers ...uint32) { refuse(unix.EPERM, tests, numbers...) }
	type all = []test

	deny(nil, admin...)
	if l&rooms == 0 {
		deny(nil, sharedIPC...)
	}
	if l&keepFiles != 0 {
		deny(nil, slices.Concat(attributes, legacyAttributes)...)
	}
	if l&hosts != 0 { // the first that holds counts, and what remains is as without
		askLauncher(do)
	}
	switch {
	case l&network != 0:
	case l&rooms != 0: // the network is the command's own, but sockets with a name on the disk are the machine's
		deny(all{{0, isNot, unix.AF_INET}, {0, isNot, unix.AF_INET6}, {0, isNot, unix.AF_NETLINK}}, unix.SYS_SOCKET)
		// by which programs list addresses
		deny(all{{0, is, unix.AF_NETLINK}, {2, isNot, unix.NETLINK_ROUTE}}, unix.SYS_SOCKET)
		const kinds = 0xf
		deny(all{{0, isNot, unix.AF_NETLINK}, {1, hasNo, unix.SOCK_STREAM | unix.SOCK_DGRAM}}, unix.SYS_SOCKET)
		deny(all{{0, isNot, unix.AF_NETLINK}, {1, has, kinds &^ (unix.SOCK_STREAM | unix.SOCK_DGRAM)}}, unix.SYS_SOCKET)
		// SOCK_RAW
		deny(all{{0, isNot, unix.AF_NETLINK}, {1, has, unix.SOCK_STREAM}, {1, has, unix.SOCK_DGRAM}}, unix.SYS_SOCKET)
		deny(all{{0, isNot, unix.AF_NETLINK}, {2, isNot, 0}, {2, isNot, unix.IPPROTO_TCP},
			{2, isNot, unix.IPPROTO_UDP}}, unix.SYS_SOCKET)
		deny(all{{0, isNot, unix.AF_UNIX}}, unix.SYS_SOCKETPAIR)
		deny(all{{1, hasNo, 1}}, unix.SYS_SOCKETPAIR) // a datagram could be sent to any name
		deny(all{{1, has, 10}}, unix.SYS_SOCKETPAIR)
	default: // only local sockets with a connected peer
		deny(nil, unix.SYS_CONNECT)
		deny(all{{0, isNot, unix.AF_UNIX}}, unix.SYS_SOCKET, unix.SYS_SOCKETPAIR)
		// what remains is SOCK_STREAM, 1, and SOCK_SEQPACKET, 5
		deny(all{{1, hasNo, 1}}, unix.SYS_SOCKET, unix.SYS_SOCKETPAIR)
		deny(all{{1, has, 10}}, unix.SYS_SOCKET, unix.SYS_SOCKETPAIR)
		deny(all{{4, isNot, 0}}, unix.SYS_SENDTO)
		deny(all{{4 | upper, isNot, 0}}, unix.SYS_SENDTO)
	}

	// A process changes only itself, which is 0.
	deny(all{{0, isNot, 0}}, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETSCHEDULER,
		unix.SYS_SCHED_SETPARAM, unix.SYS_PRLIMIT64)
	deny(all{{0, isNot, unix.PRIO_PROCESS}}, unix.SYS_SETPRIORITY)
	deny(all{{0, isNot, 1}}, unix.SYS_IOPRIO_SET) // IOPRIO_WHO_PROCESS
	deny(all{{1, isNot, 0}}, unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET)
	// The limit of processes stays: a launcher can lower only the soft limit of commands without losing its own.
	deny(all{{0, is, unix.RLIMIT_NPROC}}, unix.SYS_SETRLIMIT)
	deny(all{{1, is, unix.RLIMIT_NPROC}, {2, isNot, 0}}, unix.SYS_PRLIMIT64)
	deny(all{{1, is, unix.RLIMIT_NPROC}, {2 | upper, isNot, 0}}, unix.SYS_PRLIMIT64)

	// No setuid or setgid files.
	const setID = unix.S_ISUID | unix.S_ISGID
	deny(all{{1, has, setID}}, append(legacyMode, unix.SYS_FCHMOD)...)
	deny(all{{2, has, setID}}, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_MKNODAT)
	for flags, opens := range map[uint32][]uint32{1: legacyOpen, 2: {unix.SYS_OPENAT}} {
		if l&truncate != 0 { // a file that is opened for reading
			refuse(unix.EACCES, all{{flags, has, unix.O_TRUNC}, {flags, hasNo, unix.O_ACCMODE}}, opens...)
		}
		// Without one of these flags the kernel ignores the mode, which is next.
		deny(all{{flags, has, unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY}, {flags + 1, has, setID}}, opens...)
	}
	if l&truncate != 0 {
		refuse(unix.EACCES, nil, unix.SYS_TRUNCATE)
	}

	deny(all{{0, has, unix.CLONE_NEWUSER}}, unix.SYS_CLONE, unix.SYS_UNSHARE)
	refuse(unix.ENOSYS, nil, unix.SYS_OPENAT2, unix.SYS_CLONE3)
	for _, control := range controls {
		deny(all{{1, is, control}}, unix.SYS_IOCTL)
	}

	// No signals to the thread, unless it becomes the command.
	if thread != 0 {
		deny(all{{0, is, thread}}, unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_PIDFD_OPEN)
		deny(all{{1, is, thread}}, unix.SYS_TGKILL, unix.SYS_RT_TGSIGQUEUEINFO)
		deny(all{{1, is, unix.F_SETOWN}, {2, is, thread}}, unix.SYS_FCNTL)
	}
	// This call also takes the folder of a thread, which a filter cannot see. Without it, libraries signal by process id.
	refuse(unix.ENOSYS, nil, unix.SYS_PIDFD_SEND_SIGNAL)
	// A file can be set to send a signal to a thread.
	deny(all{{1, is, unix.F_SETOWN_EX}}, unix.SYS_FCNTL)
	return calls
}

// admin are the system calls that change the machine, look into other processes, or circumvent Landlock.
var admin = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
	unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR,
	unix.SYS_OPEN_TREE_ATTR, unix.SYS_SETNS, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_KEXEC_LOAD,
	unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_SYSLOG, unix.SYS_USERFAULTFD,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP,
	unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_FILE_SETATTR,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
}

// sharedIPC are the calls of System V IPC and POSIX queues, which reach other processes by well-known keys and names.
var sharedIPC = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// attributes are the calls that change the mode, the owner, the times and the extended attributes of a file, which
// Landlock does not see. A filter cannot distinguish files, so it denies these calls only where no file is writable.
var attributes = []uint32{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
}

// controls are commands of ioctl that change a file through a descriptor for reading, or type into a terminal.
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
