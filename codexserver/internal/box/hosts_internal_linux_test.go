//go:build amd64 || arm64

package box

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNoSocketOfIP runs the filter for every way to ask for a socket. What it lets through are local streams, and what
// goes to the launcher, which makes a local pair, is a stream of TCP over IPv4. The kernel uses the lower halves of the
// arguments; rubbish in the upper ones changes nothing.
func TestNoSocketOfIP(t *testing.T) {
	const (
		pass, ask = uint32(unix.SECCOMP_RET_ALLOW), uint32(unix.SECCOMP_RET_USER_NOTIF)
		no        = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		missing   = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	with, without := filter(hosts, 7), filter(0, 7)
	check := func(nr, hosted, local uint32, args ...uint64) { // what comes of a call with hosts, and without
		t.Helper()
		for _, rubbish := range []uint64{0, 1 << 32, 0xdeadbeef << 32, 0xffffffff << 32} {
			var all [6]uint64
			for i, a := range args {
				all[i] = a | rubbish
			}
			if h, l := with.run(nativeArch, nr, all), without.run(nativeArch, nr, all); h != hosted || l != local {
				t.Fatalf("call %d, %#x: %#x and %#x, want %#x and %#x", nr, all, h, l, hosted, local)
			}
		}
	}
	for n := range uint64(50 * 16) {
		family, kind := n/16, n%16
		for _, flags := range []uint64{0, unix.SOCK_NONBLOCK, unix.SOCK_CLOEXEC, unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC, 0x10, 0x100, 0x40000000, 0x80000000} {
			for _, protocol := range []uint64{0, 1, 6, 17, 41, 47, 58, 132, 136, 255, 256, 262, 0x80000006} {
				local, hosted := no, no
				switch {
				case family == unix.AF_UNIX && (kind == unix.SOCK_STREAM || kind == unix.SOCK_SEQPACKET):
					local, hosted = pass, pass
				case family == unix.AF_INET && kind == unix.SOCK_STREAM && flags&^(unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC) == 0 && (protocol == 0 || protocol == 6):
					hosted = ask
				}
				check(unix.SYS_SOCKETPAIR, local, local, family, kind|flags, protocol)
				check(unix.SYS_SOCKET, hosted, local, family, kind|flags, protocol)
			}
		}
	}
	for length := range uint64(300) { // or level
		connect, bind, option := no, pass, failing(0)
		switch length {
		case unix.SizeofSockaddrInet4:
			connect, bind = ask, ask
		case unix.SizeofSockaddrInet6:
			bind = ask
		case unix.SOL_SOCKET:
			option = pass
		}
		check(unix.SYS_CONNECT, connect, no, 3, 0x1000, length)
		check(unix.SYS_BIND, bind, pass, 3, 0x1000, length)
		check(unix.SYS_SETSOCKOPT, option, pass, 3, length, 1)
	}
	check(unix.SYS_SENDTO, no, no, 3, 0, 0, unix.MSG_FASTOPEN, 0x1000, 16)
	check(unix.SYS_SENDTO, no, no, 3, 0, 0, 0, 1<<32, 16)
	for _, from := range foreign {
		check(from+unix.SYS_SOCKET, missing, missing, unix.AF_INET, unix.SOCK_STREAM)
	}
	for _, arch := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0} {
		for nr := range uint32(500) { // socketcall is 102 there
			if got := with.run(arch, nr, [6]uint64{unix.AF_INET, unix.SOCK_STREAM}); got != no {
				t.Fatalf("call %d of %#x: %#x", nr, arch, got)
			}
		}
	}
}

// run is what the kernel does with a call.
func (p bpf) run(arch, nr uint32, args [6]uint64) uint32 {
	data, acc := append([]uint64{uint64(arch)<<32 | uint64(nr), 0}, args[:]...), uint32(0)
	for at := 0; ; at++ {
		ins := p[at]
		jump, holds := ins.Jf, false
		switch ins.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = uint32(data[ins.K/8] >> (ins.K % 8 * 8))
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
			jump = ins.Jt
		}
		at += int(jump)
	}
}
