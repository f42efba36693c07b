//go:build amd64 || arm64

package box

import (
	"golang.org/x/sys/unix"
)

// A launcher starts commands with a lower soft limit of processes than its own,
// see [run.Main]. It cannot lower their hard limit without losing its own.

// limitLock denies changes of the limit of processes.
func limitLock() bpf {
	var set bpf // prlimit64(pid, resource, new, old)
	set.load(offsetArgs + 1*8)
	set.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.RLIMIT_NPROC, 1, 0)
	set.allow()
	set.load(offsetArgs + 2*8)
	set.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 0, 2)
	set.load(offsetArgs + 2*8 + 4)
	set.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 1, 0)
	set.deny(unix.EPERM)
	set.allow()

	var old bpf // setrlimit(resource, new)
	old.load(offsetArgs)
	old.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.RLIMIT_NPROC, 0, 1)
	old.deny(unix.EPERM)
	old.allow()

	var p bpf // the other filter denies calls of foreign architectures
	p.load(offsetNumber)
	p.when(unix.SYS_PRLIMIT64, set)
	p.when(unix.SYS_SETRLIMIT, old)
	p.allow()
	return p
}
