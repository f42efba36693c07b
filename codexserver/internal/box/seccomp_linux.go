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
	// Offsets in struct seccomp_data, little endian.
	offsetNumber, offsetArch, offsetArgs = 0, 4, 16
)

// limits determine a filter.
type limits uint8

const (
	network   limits = 1 << iota // leaves the network open
	truncate                     // denies truncation, which Landlock does not see before its third version
	keepFiles                    // denies changing what belongs to files, in every folder
	hosts                        // lets the command ask for hosts; never with network
	rooms                        // the command has rooms, see [run.Rooms]
	closed                       // the command reads only what the rules name
)

// filter builds the program that the kernel runs for each system call and, when it is installed, for each possible one,
// so most calls must leave it soon. It denies signals to a thread, which has the same domain of Landlock.
func filter(l limits, thread uint32) bpf {
	calls := refusals(l, thread)
	p := make(bpf, 0, 512)
	// A call of another architecture has other numbers.
	p.load(offsetArch)
	p.add(unix.BPF_JEQ, nativeArch, 1, 0)
	p.end(failing(unix.EPERM))
	p.load(offsetNumber)
	for _, nr := range foreign {
		p.add(unix.BPF_JGE, nr, 0, 1)
		p.end(failing(unix.ENOSYS))
	}
	groups := slices.Collect(slices.Chunk(slices.Sorted(maps.Keys(calls)), 8))
	for i, group := range groups {
		body := make(bpf, 0, 128)
		for _, nr := range group {
			judged := judge(calls[nr])
			body.add(unix.BPF_JEQ, nr, 0, uint8(len(judged)))
			body = append(body, judged...)
		}
		body.end(unix.SECCOMP_RET_ALLOW)
		if i+1 < len(groups) { // skip the group for the numbers of later ones
			p.add(unix.BPF_JGE, groups[i+1][0], uint8(len(body)), 0)
		}
		p = append(p, body...)
	}
	return p
}

func judge(all []refusal) (p bpf) {
	for _, r := range all {
		for i, t := range r.tests {
			p.load(offsetArgs + t.arg&^upper*8 + t.arg&upper/2)
			behind := uint8(2*(len(r.tests)-i) - 1) // the refusal
			yes, no := uint8(0), behind
			if t.op == isNot || t.op == hasNo {
				yes, no = behind, 0
			}
			code := uint16(unix.BPF_JEQ)
			if t.op == has || t.op == hasNo {
				code = unix.BPF_JSET
			}
			p.add(code, t.value, yes, no)
		}
		p.end(r.action)
	}
	p.end(unix.SECCOMP_RET_ALLOW)
	return p
}

type bpf []unix.SockFilter

// add adds a jump over yes or no instructions.
func (p *bpf) add(test uint16, k uint32, yes, no uint8) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, Jt: yes, Jf: no, K: k})
}

func (p *bpf) load(offset uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

func (p *bpf) end(action uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
}

func seccompAvailable() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// installFilter applies the filter to the calling thread. This cannot be undone. It returns the descriptor that
// [unix.SECCOMP_FILTER_FLAG_NEW_LISTENER] among the flags makes.
func installFilter(f bpf, flags uintptr) (listener int, err error) {
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	return int(fd), nil
}
