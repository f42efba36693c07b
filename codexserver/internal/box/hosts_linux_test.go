package box_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// proxyAt is the one of the proxy in the environment of a command.
var proxyAt = &unix.SockaddrInet4{Port: 3128, Addr: [4]byte{127, 0, 0, 1}}

func confineHosts(t testing.TB, p protocol.SandboxPolicy, dir string) *box.Hosts {
	t.Helper()
	boxtest.Need(t)
	if err := box.HostsAvailable(); err != nil {
		t.Skip(err)
	}
	h := must.Get(box.New(box.Options{Hosts: true}).Confine(p, dir, nil))(t).Hosts()
	if h == nil {
		t.Fatal("the sandbox has no hosts")
	}
	return h
}

// echo answers each byte of a socket with it.
func echo(_ context.Context, c net.Conn) {
	_, _ = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
} // not by pipes, which stay for a while

// given is a socket that a command asks for.
func given(flags int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|flags, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	return fd, nil
}

// used connects a socket to the proxy and has a byte echoed.
func used(fd int) error {
	if err := unix.Connect(fd, proxyAt); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	b := []byte("x")
	if _, err := unix.Write(fd, b); err != nil {
		return err
	}
	if n, err := unix.Read(fd, b); err != nil || n != 1 {
		return fmt.Errorf("%d bytes: %w", n, err)
	}
	return nil
}

// use makes a socket, and uses it.
func use() error {
	fd, err := given(0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return used(fd)
}

// hostProbes are what a command with hosts may try.
var hostProbes = map[string]func(args []string) error{
	"use": func([]string) error { return use() },
	"bind a local name": func(a []string) error { // as long as an address of IPv4, and of IPv6
		for _, name := range []string{"13-characters", "twenty-five-characters-xx"} {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			address := append([]byte{unix.AF_UNIX, 0}, name+"\x00"...)
			if err := raw(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&address[0])), uintptr(len(address))); err != nil {
				return err
			}
			if _, err := os.Lstat(name); err != nil {
				return err
			}
		}
		return nil
	},
	"flags": func([]string) error { // as they were asked for
		for _, flags := range []int{0, unix.SOCK_NONBLOCK, unix.SOCK_CLOEXEC, unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC} {
			fd, err := given(flags)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			status, err1 := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
			descriptor, err2 := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			if status&unix.O_NONBLOCK != 0 != (flags&unix.SOCK_NONBLOCK != 0) || descriptor&unix.FD_CLOEXEC != 0 != (flags&unix.SOCK_CLOEXEC != 0) {
				return fmt.Errorf("flags %#x: %#x, %#x", flags, status, descriptor)
			}
		}
		return nil
	},
	"names": func([]string) error { // as if it were a socket of TCP, also where there is little room
		fd, err := given(0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		own, err1 := unix.Getsockname(fd)
		peer, err2 := unix.Getpeername(fd)
		if got := fmt.Sprint(own, peer, errors.Join(err1, err2)); got != "&{3129 [127 0 0 1] {0 0 [0 0 0 0] [0 0 0 0 0 0 0 0]}} &{3128 [127 0 0 1] {0 0 [0 0 0 0] [0 0 0 0 0 0 0 0]}} <nil>" {
			return errors.New(got)
		}
		room, size := [8]byte{6: 7, 7: 7}, int32(6)
		if err := raw(unix.SYS_GETPEERNAME, uintptr(fd), uintptr(unsafe.Pointer(&room)), uintptr(unsafe.Pointer(&size))); err != nil || size != 16 || room != [8]byte{2, 0, 12, 56, 127, 0, 7, 7} {
			return fmt.Errorf("%v, %d: %w", room, size, err)
		}
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(pair[0])
		defer unix.Close(pair[1])
		name, err := unix.Getpeername(pair[0])
		return differs(err, fmt.Sprintf("%T", name), "*unix.SockaddrUnix")
	},
	"not dumpable": func([]string) error {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return err
		}
		defer unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
		return use()
	},
	"another thread changes the address": func(a []string) error {
		const proxy = 0x0100007f380c0002 // 127.0.0.1:3128
		b := []uint64{proxy, 0}
		var stop atomic.Bool
		var changing sync.WaitGroup
		changing.Go(func() {
			for !stop.Load() {
				atomic.StoreUint64(&b[0], numbers(a)[0])
				atomic.StoreUint64(&b[0], proxy)
			}
		})
		defer changing.Wait()
		defer stop.Store(true)
		for range 2000 {
			fd, err := given(0)
			if err != nil {
				return err
			}
			_ = raw(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 16)
			if _, err := unix.Write(fd, []byte("x")); err != nil {
				return err
			}
			unix.Close(fd)
		}
		return nil // the test looks whether somebody was reached
	},
	"descriptors for the server": func([]string) error {
		fd, err := given(0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for range 100 {
			if err := unix.Sendmsg(fd, []byte("x"), unix.UnixRights(0, 1, 2, fd), nil, 0); err != nil {
				return err
			}
			if n, err := unix.Read(fd, make([]byte, 1)); n != 1 || err != nil {
				return fmt.Errorf("%d bytes: %w", n, err)
			}
		}
		return nil
	},
	"many": func(a []string) error {
		var all []int
		for range 10_000 {
			fd, err := given(0)
			if err != nil {
				if n := len(all); n != 64 || !errors.Is(err, unix.EMFILE) {
					return fmt.Errorf("after %d: %w", n, err)
				}
				break
			}
			all = append(all, fd)
		}
		for _, fd := range all {
			unix.Close(fd)
		}
		for range 1000 { // until the server has seen it
			if err := use(); err == nil {
				return nil
			}
			time.Sleep(time.Millisecond)
		}
		return errors.New("no socket is free any more")
	},
	"signals": func([]string) error {
		var timer [4]int64
		timer[1], timer[3] = 500, 500 // microseconds
		if err := raw(unix.SYS_SETITIMER, 0, uintptr(unsafe.Pointer(&timer)), 0); err != nil {
			return err
		}
		defer func() {
			timer = [4]int64{}
			_ = raw(unix.SYS_SETITIMER, 0, uintptr(unsafe.Pointer(&timer)), 0)
		}()
		for range 500 {
			if err := use(); err != nil {
				return err
			}
		}
		return nil
	},
	"a server in the sandbox": func([]string) error {
		if err := box.HostsAvailable(); err == nil || !strings.Contains(err.Error(), "something else answers") {
			return fmt.Errorf("hosts in hosts: %v", err)
		}
		c, err := box.New(box.Options{Hosts: true}).Confine(write("."), "/", nil)
		if err != nil {
			return err
		}
		if c.Hosts() != nil {
			return errors.New("a confinement has hosts in hosts")
		}
		return nil
	},
}

// hostKinds are what a command with hosts tries besides, by the names of the second table in SECURITY.md.
var hostKinds = []kind{
	{"reach the server's proxy, which asks about each host", []row{
		{name: "use it", probe: []string{"use"}, hosts: "ok"},
		{name: "use it while not dumpable", probe: []string{"not dumpable"}, hosts: "ok"},
	}},
	{"connect to another address, by IPv4 or IPv6, also one that changes meanwhile", []row{
		{name: "IPv4", probe: []string{"call", "connect", "socket", "words:@address,0", "16"}, hosts: "EPERM"},
		{name: "IPv4, long", probe: []string{"call", "connect", "socket", "words:@address,0,0,0,0,0,0,0", "64"}, hosts: "EPERM"},
		{name: "IPv4, short", probe: []string{"call", "connect", "socket", "words:@address,0", "8"}, hosts: "EPERM"},
		{name: "IPv4 in IPv6", probe: []string{"call", "connect", "socket", "words:0x5000000a,0,0x0100007fffff0000,0", "28"}, hosts: "EPERM"},
		{name: "nothing", probe: []string{"call", "connect", "socket", "words:0,0", "16"}, hosts: "EPERM"},
		{name: "a local name", probe: []string{"call", "connect", "socket", "words:0x4141414141410001,0", "16"}, hosts: "EPERM"},
		{name: "no memory", probe: []string{"call", "connect", "socket", "16", "16"}, hosts: "EFAULT"},
		{name: "fast open", probe: []string{"call", "sendto", "socket", "words:0", "1", "0x20000000", "words:@address,0", "16"}, hosts: "EPERM"},
		{name: "an address that another thread changes", probe: []string{"another thread changes the address", "@address"}, hosts: "ok", guards: true},
	}},
	{"bind, listen, accept", []row{
		{name: "bind to IPv4", probe: []string{"call", "bind", "socket", "words:0x0100007f00000002,0", "16"}, hosts: "EPERM"},
		{name: "bind to IPv6", probe: []string{"call", "bind", "socket", "words:10,0,0x0100000000000000,0", "28"}, hosts: "EPERM"},
		{name: "listen", probe: []string{"call", "listen", "socket", "1"}, hosts: "EINVAL"},
		{name: "accept", probe: []string{"call", "accept", "socket", "0", "0"}, hosts: "EINVAL"},
	}},
	{"make a datagram, raw, ICMP, SCTP, MPTCP, netlink or vsock socket", []row{ // as without hosts, and these
		{name: "socket of ICMP", probe: []string{"call", "socket", "2", "2", "1"}, hosts: "EPERM"},
		{name: "raw socket", probe: []string{"call", "socket", "2", "3", "1"}, hosts: "EPERM"},
		{name: "socket of SCTP", probe: []string{"call", "socket", "2", "1", "132"}, hosts: "EPERM"},
		{name: "socket of ICMP by IPv6", probe: []string{"call", "socket", "10", "2", "58"}, hosts: "EPERM"},
		{name: "socket pair inet", probe: []string{"call", "socketpair", "2", "1", "0", "words:0"}, hosts: "EPERM"},
	}},
	{"hand descriptors to the server", []row{{name: "descriptors", probe: []string{"descriptors for the server"}, hosts: "ok", guards: true}}}, // they are dropped
	{"have more than 64 sockets at a time", []row{{name: "many", probe: []string{"many"}, hosts: "ok", guards: true}}},                         // which it checks
	{"", []row{
		{name: "names of sockets", probe: []string{"names"}, hosts: "ok"},
		{name: "no memory for a name", probe: []string{"call", "getpeername", "socket", "16", "16"}, hosts: "EFAULT"},
		{name: "a negative size of a name", probe: []string{"call", "getpeername", "socket", "words:0,0", "words:0xffffffff"}, hosts: "EINVAL"},
		{name: "the name of no socket", probe: []string{"call", "getpeername", "0", "words:0,0", "words:16"}, hosts: "ENOTSOCK"},
		{name: "an option of TCP", probe: []string{"call", "setsockopt", "socket", "6", "1", "words:1", "4"}, hosts: "ok"},
		{name: "flags of sockets", probe: []string{"flags"}, hosts: "ok"},
		{name: "signals meanwhile", probe: []string{"signals"}, hosts: "ok"},
		{name: "a server in the sandbox", probe: []string{"a server in the sandbox"}, hosts: "ok"},
		{name: "bind a local name", probe: []string{"bind a local name"}, hosts: "ok"},
	}},
}

// TestHostsOnlyThere says which sandboxes have hosts, and what a command there sees of them.
func TestHostsOnlyThere(t *testing.T) {
	confineHosts(t, write(), "/")
	online, helper := write(), box.Options{Hosts: true, Helper: []string{"true"}}
	online.NetworkAccess = true
	for _, tt := range []struct {
		options box.Options
		policy  protocol.SandboxPolicy
	}{{box.Options{}, write()}, {box.Options{Hosts: true}, readOnly}, {box.Options{Hosts: true}, online}, {helper, write()}} {
		c := must.Get(box.New(tt.options).Confine(tt.policy, "/", nil))(t)
		if c.Hosts() != nil {
			t.Errorf("%+v with %+v has hosts", tt.policy, tt.options)
		}
	}
	c := must.Get(box.New(box.Options{Hosts: true}).Confine(write(), t.TempDir(), nil))(t)
	must.Equal(t, "without hosts", []string{"CODEX_SANDBOX_NETWORK_DISABLED=1"}, c.Environ())
	env := c.Hosts().Environ([]string{"A=1", "HTTPS_PROXY=http://user:secret@corp:1", "no_proxy=x", "NO_PROXYX=y"})
	const at = "http://127.0.0.1:3128"
	must.Equal(t, "with hosts", []string{
		"A=1", "NO_PROXYX=y", "NODE_USE_ENV_PROXY=1", "HTTP_PROXY=" + at, "http_proxy=" + at, "HTTPS_PROXY=" + at, "https_proxy=" + at,
		"ALL_PROXY=" + at, "all_proxy=" + at, "NO_PROXY=", "no_proxy=", "CODEX_SANDBOX_NETWORK_DISABLED=1",
	}, env)
	// The server's own functions, such as a patch, and git have no launcher.
	err := c.Do(func() error { return closed(given(0)) })
	must.Equal(t, "a function", true, errors.Is(err, unix.EPERM))
}

// TestHostsEnd ends commands with open sockets in every way. All sockets are closed when Run returns.
func TestHostsEnd(t *testing.T) {
	const script = `exec 3<>/dev/tcp/127.0.0.1/3128 && echo x >&3 && read -r x <&3; (setsid sleep 60 3<&3 &) ; echo $PPID; `
	for name, tt := range map[string]struct {
		argv []string
		end  func(launcher int, cancel func()) // when the socket is open
		want int32
	}{
		"by itself, with a child that stays": {[]string{"bash", "-c", script}, func(int, func()) {}, -99},
		"the server ends it":                 {[]string{"bash", "-c", script + "sleep 60"}, func(_ int, cancel func()) { cancel() }, -99},
		"the launcher is killed":             {[]string{"bash", "-c", script + "sleep 60"}, func(launcher int, _ func()) { _ = syscall.Kill(launcher, syscall.SIGKILL) }, -99},
		"it cannot start":                    {[]string{"/etc/passwd"}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := confineHosts(t, write(), "/")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var open atomic.Int32
			_, _ = boxtest.Starter(t).Run(ctx, run.Spec{
				Argv: tt.argv, Dir: "/", Env: h.Environ([]string{"PATH=/usr/bin:/bin"}), Confinement: h, Timeout: time.Minute,
				Sockets: func(ctx context.Context, c net.Conn) {
					open.Add(1)
					defer open.Add(-100)
					echo(ctx, c)
				},
			}, func(_ protocol.OutputStream, launcher []byte) {
				tt.end(pid([]string{strings.TrimSpace(string(launcher))}), cancel)
			})
			must.Equal(t, "sockets that were served and closed", tt.want, open.Load())
		})
	}
}
