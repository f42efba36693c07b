//go:build amd64 || arm64

package box

import (
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	seccompSetModeFilter = 1
	seccompErrno         = 0x00050000
	seccompAllow         = 0x7fff0000

	// Offsets in struct seccomp_data, little endian.
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// admin are the system calls that change the machine, look into other processes, or
// circumvent Landlock.
var admin = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
	unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR,
	unix.SYS_OPEN_TREE_ATTR, unix.SYS_SETNS, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
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

// limits determine a filter.
type limits uint8

const (
	network   limits = 1 << iota // leaves the network open
	truncate                     // denies truncation, which Landlock does not see before its third version
	readOnly                     // denies changing what belongs to files, in every folder
	inProcess                    // is for a function of this program, which may use openat2
)

// filter builds the program that the kernel runs for each system call. When it is
// installed, the kernel also runs it once for every possible call, so most calls must
// leave it after few instructions. It denies signals to a thread, which has the same domain of Landlock.
func filter(l limits, thread uint32) bpf {
	bodies := make(map[uint32]bpf, 128)
	limitArguments(bodies, l)
	spare(bodies, thread)
	denied := denial(unix.EPERM)
	for _, nr := range admin {
		bodies[nr] = denied
	}
	for _, nr := range sharedIPC {
		bodies[nr] = denied
	}
	if l&readOnly != 0 {
		for _, nr := range slices.Concat(attributes, legacyAttributes) {
			bodies[nr] = denied
		}
	}
	if l&network == 0 {
		bodies[unix.SYS_CONNECT] = denial(unix.EPERM)
		bodies[unix.SYS_SOCKET] = localStream()
		bodies[unix.SYS_SOCKETPAIR] = localStream()
		bodies[unix.SYS_SENDTO] = withoutPointer(4) // to a connected peer only
	}
	if l&truncate != 0 {
		bodies[unix.SYS_TRUNCATE] = denial(unix.EACCES)
		bodies[unix.SYS_OPENAT2] = denial(unix.ENOSYS) // its flags are in memory
	}

	p := make(bpf, 0, 512)
	// A call of another architecture has other numbers.
	p.load(offsetArch)
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, nativeArch, 1, 0)
	p.deny(unix.EPERM)
	p.load(offsetNumber)
	for _, nr := range foreign {
		p.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, nr, 0, 1)
		p.deny(unix.ENOSYS)
	}
	groups := slices.Collect(slices.Chunk(slices.Sorted(maps.Keys(bodies)), 8))
	for i, group := range groups {
		body := make(bpf, 0, 128)
		for _, nr := range group {
			body.when(nr, bodies[nr])
		}
		body.allow()
		if i+1 < len(groups) { // skip the group for the numbers of later ones
			p.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, groups[i+1][0], uint8(len(body)), 0)
		}
		p = append(p, body...)
	}
	return p
}

type bpf []unix.SockFilter

func (p *bpf) add(code uint16, k uint32, jt, jf uint8) {
	*p = append(*p, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

func (p *bpf) load(offset uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }

func (p *bpf) deny(errno unix.Errno) {
	p.add(unix.BPF_RET|unix.BPF_K, seccompErrno|uint32(errno), 0, 0)
}

func (p *bpf) allow() { p.add(unix.BPF_RET|unix.BPF_K, seccompAllow, 0, 0) }

// when runs body for the system call nr. It must return, or load the number
// again.
func (p *bpf) when(nr uint32, body bpf) {
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, nr, 0, uint8(len(body)))
	*p = append(*p, body...)
}

func denial(errno unix.Errno) (p bpf) {
	p.deny(errno)
	return p
}

// localStream allows only local sockets with a connected peer: a datagram could be sent
// to any name.
func localStream() (p bpf) {
	p.load(offsetArgs)
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.AF_UNIX, 1, 0)
	p.deny(unix.EPERM)
	p.load(offsetArgs + 8)
	p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xf, 0, 0) // without the flags
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.SOCK_STREAM, 2, 0)
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.SOCK_SEQPACKET, 1, 0)
	p.deny(unix.EPERM)
	p.allow()
	return p
}

// withoutPointer denies a call when an argument is not nil.
func withoutPointer(arg uint32) (p bpf) {
	for _, half := range []uint32{0, 4} {
		p.load(offsetArgs + arg*8 + half)
		p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 1, 0)
		p.deny(unix.EPERM)
	}
	p.allow()
	return p
}

// seccompAvailable reports whether the kernel takes filters.
func seccompAvailable() bool {
	const getActionAvail = 2
	action := uint32(seccompErrno)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, getActionAvail, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// installFilter applies the filter to the calling thread. This cannot be undone.
func installFilter(f bpf) error {
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, seccompSetModeFilter, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}
