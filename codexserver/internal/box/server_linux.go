//go:build amd64 || arm64

package box

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// A command has the Landlock domain of the thread that started it. So until that thread ends, Landlock does not keep
// the command from it, and through it from the server's memory. This file does.

// prying are the capabilities that circumvent a confinement, that can make setuid or immutable files, or that change
// the machine and its network, or listen to the network or the kernel's log.
var prying = []int{
	unix.CAP_SYS_PTRACE, unix.CAP_PERFMON, unix.CAP_SYS_ADMIN, unix.CAP_SYS_RAWIO,
	unix.CAP_SETFCAP, unix.CAP_FSETID, unix.CAP_LINUX_IMMUTABLE,
	unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_SYSLOG, unix.CAP_SYS_RESOURCE, unix.CAP_SYS_NICE,
	unix.CAP_SYS_MODULE, unix.CAP_SYS_BOOT,
	unix.CAP_SYS_TIME, unix.CAP_SYS_PACCT, unix.CAP_SYS_TTY_CONFIG, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE,
	unix.CAP_AUDIT_CONTROL, unix.CAP_BPF, unix.CAP_CHECKPOINT_RESTORE,
}

// HideProcess hides this process's memory, environment and descriptors from other processes of the user. This cannot be
// undone. A program whose environment holds secrets calls it before it starts anything. The process then writes no core
// dumps, and debuggers cannot attach without extra rights.
func HideProcess() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide the process: %w", err)
	}
	return nil
}

// dropPrying drops the prying capabilities of the calling thread, which no new privileges can bring back.
func dropPrying() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	for _, capability := range prying {
		dropFrom(&sets, capability)
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}

func dropFrom(sets *[2]unix.CapUserData, capability int) {
	set, rest := &sets[capability/32], ^(uint32(1) << (capability % 32))
	set.Effective &= rest
	set.Permitted &= rest
	set.Inheritable &= rest // and with it what is ambient
}
