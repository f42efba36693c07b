//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// A command has the Landlock domain of the thread that started it, so nothing in
// Landlock keeps it from that thread, and through it from the server's memory,
// until the thread has ended. What is here does.

// prying are the capabilities that lead around all of it, those that leave
// programs with the rights of others or files that cannot be changed behind, and
// those that change the machine, and its network, or listen to it or its log.
var prying = []int{
	unix.CAP_SYS_PTRACE, unix.CAP_PERFMON, unix.CAP_SYS_ADMIN, unix.CAP_SYS_RAWIO,
	unix.CAP_SETFCAP, unix.CAP_FSETID, unix.CAP_LINUX_IMMUTABLE,
	unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_SYSLOG, unix.CAP_SYS_RESOURCE, unix.CAP_SYS_NICE, unix.CAP_SYS_MODULE, unix.CAP_SYS_BOOT,
	unix.CAP_SYS_TIME, unix.CAP_SYS_PACCT, unix.CAP_SYS_TTY_CONFIG, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE,
	unix.CAP_AUDIT_CONTROL, unix.CAP_BPF, unix.CAP_CHECKPOINT_RESTORE,
}

// HideProcess keeps this process's memory, environment and descriptors from
// other processes of the user, for good. A program whose environment holds
// secrets calls it before it starts anything. It costs core dumps and debuggers
// that attach without rights.
func HideProcess() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide the process: %w", err)
	}
	return nil
}

// hideServer keeps this process's memory, environment and descriptors from
// processes without the prying capabilities, as [HideProcess] does.
func hideServer() error {
	if err := HideProcess(); err != nil {
		return err
	}
	return nil
}

// dropPrying takes the prying capabilities from the calling thread. With no new
// privileges, what it starts cannot get them back.
func dropPrying() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	for _, capability := range prying {
		set, rest := &sets[capability/32], ^(uint32(1) << (capability % 32))
		set.Effective &= rest
		set.Permitted &= rest
		set.Inheritable &= rest // and with it what is ambient
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}

// someThread stands for a thread's id that is not known yet; no thread has it.
const someThread = 0xffff_fffe

// spare denies signals to a thread.
func spare(bodies map[uint32]program) {
	for _, call := range []struct{ nr, arg uint32 }{
		{unix.SYS_KILL, 0}, {unix.SYS_TKILL, 0}, {unix.SYS_TGKILL, 1},
		{unix.SYS_RT_SIGQUEUEINFO, 0}, {unix.SYS_RT_TGSIGQUEUEINFO, 1}, {unix.SYS_PIDFD_OPEN, 0},
	} {
		var body program
		body.load(offsetArgs + call.arg*8)
		body.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, someThread, 0, 1)
		body.deny(unix.EPERM)
		body.allow()
		bodies[call.nr] = body
	}
	// The threads' folders in /proc serve as descriptors, which do not show whose
	// they are. Without this call libraries signal by process.
	bodies[unix.SYS_PIDFD_SEND_SIGNAL] = denial(unix.ENOSYS)
	// What a file makes happen may be a signal too.
	var body program
	body.load(offsetArgs + 8)
	body.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.F_SETOWN_EX, 4, 0)
	body.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.F_SETOWN, 0, 2)
	body.load(offsetArgs + 16)
	body.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, someThread, 1, 0)
	body.allow()
	body.deny(unix.EPERM)
	bodies[unix.SYS_FCNTL] = body
}

// sparing is the program with the thread that it spares.
func (p program) sparing(tid int) program {
	p = slices.Clone(p)
	for i := range p {
		if p[i].Code == unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K && p[i].K == someThread {
			p[i].K = uint32(tid)
		}
	}
	return p
}
