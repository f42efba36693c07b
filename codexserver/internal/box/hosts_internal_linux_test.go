//go:build amd64 || arm64

package box

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNoSocketOfIP runs the filter for every way to ask for a socket. What it lets through are local streams, and what
// goes to the launcher, which makes a local pair, is a stream of TCP over IPv4. The kernel uses the lower halves of the
// arguments; rubbish in the upper ones changes nothing.
func TestNoSocketOfIP(t *testing.T) {
	const (
		pass, ask = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_USER_NOTIF
		no        = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		missing   = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	with, without := filter(hosts, 7), filter(0, 7)
	for _, rubbish := range []uint64{0, 1 << 32, 0xdeadbeef << 32, 0xffffffff << 32} {
		for family := range uint64(50) {
			for kind := range uint64(16) {
				for _, flags := range []uint64{0, unix.SOCK_NONBLOCK, unix.SOCK_CLOEXEC, unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC, 0x10, 0x100, 0x40000000, 0x80000000} {
					for _, protocol := range []uint64{0, 1, 6, 17, 41, 47, 58, 132, 136, 255, 256, 262, 0x80000006} {
						args := [6]uint64{family | rubbish, kind | flags | rubbish, protocol | rubbish}
						local := family == unix.AF_UNIX && (kind&15 == unix.SOCK_STREAM || kind&15 == unix.SOCK_SEQPACKET)
						tcp := family == unix.AF_INET && kind == unix.SOCK_STREAM && flags&^(unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC) == 0 && (protocol == 0 || protocol == 6)
						want := no
						if local {
							want = pass
						}
						if got := with.run(nativeArch, unix.SYS_SOCKETPAIR, args); got != want {
							t.Fatalf("socketpair%#x: %#x, want %#x", args, got, want)
						}
						if got := without.run(nativeArch, unix.SYS_SOCKET, args); got != want {
							t.Fatalf("socket%#x without hosts: %#x, want %#x", args, got, want)
						}
						if tcp {
							want = ask
						}
						if got := with.run(nativeArch, unix.SYS_SOCKET, args); got != want {
							t.Fatalf("socket%#x: %#x, want %#x", args, got, want)
						}
					}
				}
			}
		}
		for length := range uint64(300) {
			args := [6]uint64{3, 0x1000, length | rubbish}
			want, bind := no, uint32(pass)
			if length == 16 {
				want, bind = ask, ask
			}
			if length == 28 {
				bind = ask
			}
			if got := with.run(nativeArch, unix.SYS_CONNECT, args); got != want {
				t.Fatalf("connect of %#x bytes: %#x, want %#x", args[2], got, want)
			}
			if got := with.run(nativeArch, unix.SYS_BIND, args); got != bind {
				t.Fatalf("bind of %#x bytes: %#x, want %#x", args[2], got, bind)
			}
		}
		for level := range uint64(300) {
			want := uint32(unix.SECCOMP_RET_ERRNO)
			if level == unix.SOL_SOCKET {
				want = pass
			}
			if got := with.run(nativeArch, unix.SYS_SETSOCKOPT, [6]uint64{3, level | rubbish, 1}); got != want {
				t.Fatalf("setsockopt at %d: %#x, want %#x", level, got, want)
			}
		}
		if got := with.run(nativeArch, unix.SYS_SENDTO, [6]uint64{3, 0, 0, unix.MSG_FASTOPEN, 0x1000 | rubbish, 16}); got != no {
			t.Fatalf("sendto with an address: %#x", got)
		}
	}
	tcp := [6]uint64{unix.AF_INET, unix.SOCK_STREAM}
	for _, arch := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0} {
		for nr := range uint32(500) { // socketcall is 102 there
			if got := with.run(arch, nr, tcp); got != no {
				t.Fatalf("call %d of %#x: %#x", nr, arch, got)
			}
		}
	}
	for _, from := range foreign {
		if got := with.run(nativeArch, from+unix.SYS_SOCKET, tcp); got != missing {
			t.Fatalf("socket of x32: %#x", got)
		}
	}
}

// TestFilters checks that what a filter asks the launcher, and what it lets seem to work, is there only with hosts, and
// that no jump of a filter is too long for its byte.
func TestFilters(t *testing.T) {
	for l := range limits(2 * hosts) {
		asks := slices.ContainsFunc(filter(l, 7), func(i unix.SockFilter) bool {
			return i.Code == unix.BPF_RET|unix.BPF_K && (i.K == unix.SECCOMP_RET_USER_NOTIF || i.K == unix.SECCOMP_RET_ERRNO)
		})
		if want := l&hosts != 0; asks != want {
			t.Errorf("the limits %b: asks the launcher %t", l, asks)
		}
		calls := refusals(l, 7)
		for nr, all := range calls {
			if len(judge(all)) > 250 {
				t.Errorf("the limits %b: call %d has %d instructions", l, nr, len(judge(all)))
			}
		}
		f := filter(l, 7)
		for nr := range uint32(600) { // each ends, where its first refusal says
			got := f.run(nativeArch, nr, [6]uint64{})
			want := uint32(unix.SECCOMP_RET_ALLOW)
			for _, r := range slices.Backward(calls[nr]) {
				if !slices.ContainsFunc(r.tests, func(x test) bool { return (x.op == is && x.value != 0) || x.op == isNot && x.value == 0 || x.op == has }) {
					want = r.action
				}
			}
			if got != want {
				t.Errorf("the limits %b: call %d with zeros: %#x, want %#x", l, nr, got, want)
			}
		}
	}
}

// run is what the kernel does with a call.
func (p bpf) run(arch, nr uint32, args [6]uint64) uint32 {
	var data [64]byte
	binary.LittleEndian.PutUint32(data[0:], nr)
	binary.LittleEndian.PutUint32(data[4:], arch)
	for i, a := range args {
		binary.LittleEndian.PutUint64(data[16+8*i:], a)
	}
	var acc uint32
	for at := 0; ; at++ {
		ins := p[at]
		holds := false
		switch ins.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = binary.LittleEndian.Uint32(data[ins.K:])
			continue
		case unix.BPF_RET | unix.BPF_K:
			return ins.K
		case unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ:
			holds = acc == ins.K
		case unix.BPF_JMP | unix.BPF_K | unix.BPF_JGE:
			holds = acc >= ins.K
		case unix.BPF_JMP | unix.BPF_K | unix.BPF_JSET:
			holds = acc&ins.K != 0
		default:
			panic(fmt.Sprintf("an instruction %#x", ins.Code))
		}
		if holds {
			at += int(ins.Jt)
		} else {
			at += int(ins.Jf)
		}
	}
}
