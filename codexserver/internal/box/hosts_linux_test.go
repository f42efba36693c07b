package box_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
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
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

func confineHosts(t testing.TB, dir string, roots []string, serve func(net.Conn)) *box.Hosts {
	t.Helper()
	boxtest.Need(t)
	if err := box.HostsAvailable(); err != nil {
		t.Skip(err)
	}
	h := must.Get(box.New(box.Options{Hosts: true}).Confine(write(roots...), dir, nil))(t).Hosts()
	if h == nil {
		t.Fatal("the sandbox has no hosts")
	}
	h.Serve = serve
	return h
}

// served counts the sockets that are served, and tooMany those for which there was no place.
var served, tooMany atomic.Int32

// echo answers each byte of a socket with it.
func echo(c net.Conn) {
	if served.Add(1) > 64 {
		tooMany.Add(1)
	}
	defer served.Add(-1)
	_, _ = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c}) // not by pipes, which stay for a while
}

// given is a socket that a command asks for.
func given(flags int) (int, error) { return unix.Socket(unix.AF_INET, unix.SOCK_STREAM|flags, 0) }

// use makes a socket, connects it to the proxy and has a byte echoed, with what else is sent with it.
func use(more ...byte) error {
	fd, err := given(0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	b := []byte("x")
	err = errors.Join(unix.Connect(fd, &unix.SockaddrInet4{Port: 3128, Addr: [4]byte{127, 0, 0, 1}}), unix.Sendmsg(fd, b, more, nil, 0))
	if n, failed := unix.Read(fd, b); err != nil || failed != nil || n != 1 {
		return fmt.Errorf("%d bytes: %w", n, cmp.Or(err, failed))
	}
	return nil
}

// hostProbes are what a command with hosts may try.
var hostProbes = map[string]func(args []string) error{
	"use": func([]string) error { return use() },
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
		for range nightly.Number(200, 2000) {
			fd, err := given(0)
			if err != nil {
				return err
			}
			_, _, _ = unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 16)
			if _, err := unix.Write(fd, []byte("x")); err != nil {
				return err
			}
			unix.Close(fd)
		}
		return nil // the test looks whether somebody was reached
	},
	"descriptors for the server": func([]string) error {
		for range 100 {
			if err := use(unix.UnixRights(0, 1, 2, 2)...); err != nil {
				return err
			}
		}
		return nil
	},
	"many": func(a []string) error { // the test looks how many are served
		var all []int
		fd, err := given(0)
		for ; err == nil && len(all) < 10_000; fd, err = given(0) {
			all = append(all, fd)
		}
		for _, fd := range all {
			unix.Close(fd)
		}
		if err == nil || err != unix.EMFILE {
			return fmt.Errorf("after %d: %w", len(all), err)
		}
		for until := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(until); time.Sleep(time.Millisecond) {
			err = use() // until the server has seen it
		}
		return err
	},
	"many connections": func([]string) error { // the test looks how many are served
		var all []int
		defer func() {
			for _, fd := range all {
				unix.Close(fd)
			}
		}()
		for range 64 + 8 {
			fd, err := given(unix.SOCK_NONBLOCK)
			if err != nil {
				break // the rest would be refused, too
			}
			all = append(all, fd)
			_ = unix.Connect(fd, &unix.SockaddrInet4{Port: 3128, Addr: [4]byte{127, 0, 0, 1}})
			_, _ = unix.Write(fd, []byte("x"))
		}
		for _, fd := range all {
			unix.Close(fd)
		}
		all = nil
		return use()
	},
	"signals": func([]string) error { // of a timer to the caller, and of the ends of orphans to the launcher
		orphans := exec.Command("sh", "-c", fmt.Sprintf("for i in $(seq %d); do (: &); done", nightly.Number(100, 500)))
		_, err := unix.Setitimer(unix.ITIMER_REAL, unix.MakeItimerval(500*time.Microsecond, 500*time.Microsecond))
		if err := errors.Join(err, orphans.Start()); err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- orphans.Wait() }()
		for len(ended) == 0 && err == nil {
			err = use()
		}
		_, failed := unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{})
		return errors.Join(err, <-ended, failed)
	},
	"a server in the sandbox": func([]string) error {
		if err := box.HostsAvailable(); err == nil || !strings.Contains(err.Error(), "device or resource busy") {
			return fmt.Errorf("hosts in hosts: %v", err)
		}
		c, err := box.New(box.Options{Hosts: true}).Confine(write("."), "/", nil)
		return differs(err, err == nil && c.Hosts() == nil, true)
	},
}

// hostKinds are what a command with hosts tries besides, by the names of the second table in SECURITY.md.
var hostKinds = []kind{
	{"reach the server's proxy, which asks about each host", []row{
		{name: "use it", probe: []string{"use"}, hosts: "ok"},
		{name: "use it while not dumpable", probe: []string{"not dumpable"}, hosts: "ok"},
	}},
	{"connect to another address, by IPv4 or IPv6, also one that changes meanwhile", []row{
		{name: "IPv4", inside: "ECONNREFUSED", probe: []string{"call", "connect", "socket:0", "words:@address,0", "16"}, hosts: "EPERM"},
		{name: "IPv4, long", inside: "ECONNREFUSED", probe: []string{"call", "connect", "socket:0", "words:@address,0,0,0,0,0,0,0", "64"}, hosts: "EPERM"},
		{name: "IPv4, short", inside: "EINVAL", probe: []string{"call", "connect", "socket:0", "words:@address,0", "8"}, hosts: "EPERM"},
		{name: "IPv4 in IPv6", inside: "EAFNOSUPPORT", probe: []string{"call", "connect", "socket:0", "words:0x5000000a,0,0x0100007fffff0000,0", "28"}, hosts: "EPERM"},
		{name: "a local name", inside: "EAFNOSUPPORT", probe: []string{"call", "connect", "socket:0", "words:0x4141414141410001,0", "16"}, hosts: "EPERM"},
		{name: "fast open", inside: "ECONNREFUSED", probe: []string{"call", "sendto", "socket:0", "words:0", "1", "0x20000000", "words:@address,0", "16"}, hosts: "EPERM"},
		{name: "an address that another thread changes", outside: true, probe: []string{"another thread changes the address", "@address"}, hosts: "ok", guards: true},
	}},
	{"bind to the proxy's address, or accept what comes there", []row{
		{name: "bind to the proxy's address", inside: "EADDRINUSE", probe: []string{"call", "bind", "socket:0", "words:0x0100007f380c0002,0", "16"}, hosts: "EPERM"},
		{name: "bind to IPv6", inside: "EAFNOSUPPORT", probe: []string{"call", "bind", "socket:0", "words:10,0,0x0100000000000000,0", "28"}, hosts: "EPERM"},
		{name: "accept", probe: []string{"call", "accept", "socket:0", "0", "0"}, hosts: "EINVAL"},
	}},
	{"make a datagram, raw, ICMP, SCTP, MPTCP, netlink or vsock socket", []row{ // as without hosts, and these
		{name: "socket of ICMP", probe: []string{"call", "socket", "2", "2", "1"}, hosts: "EPERM"},
		{name: "raw socket", probe: []string{"call", "socket", "2", "3", "1"}, hosts: "EPERM"},
		{name: "socket of SCTP", probe: []string{"call", "socket", "2", "1", "132"}, hosts: "EPERM"},
		{name: "socket of ICMP by IPv6", probe: []string{"call", "socket", "10", "2", "58"}, hosts: "EPERM"},
		{name: "socket pair inet", probe: []string{"call", "socketpair", "2", "1", "0", "words:0"}, hosts: "EPERM"},
	}},
	{"hand descriptors to the server", []row{
		{name: "descriptors", probe: []string{"descriptors for the server"}, hosts: "ok", guards: true}, // they are dropped
	}},
	{"have the server serve more than 64 sockets at a time", []row{
		{name: "many", outside: true, probe: []string{"many"}, hosts: "ok", guards: true}, // and after them one
		{name: "many connections", probe: []string{"many connections"}, hosts: "ok", guards: true},
	}},
	{"", []row{
		{name: "nothing", inside: "ok", probe: []string{"call", "connect", "socket:0", "words:0,0", "16"}, hosts: "EPERM"},
		{name: "listen", inside: "ok", probe: []string{"call", "listen", "socket:0", "1"}, hosts: "EINVAL"},
		{name: "no memory for an address", inside: "EFAULT", probe: []string{"call", "connect", "socket:0", "16", "16"}, hosts: "ok"}, // nothing is done
		{name: "an option of TCP", probe: []string{"call", "setsockopt", "socket:0", "6", "1", "words:1", "4"}, hosts: "ok"},
		{name: "status of a socket", probe: []string{"returns", "2", "fcntl", "socket:0x80000", "3"}, hosts: "ok"},
		{name: "status of a socket that does not wait", probe: []string{"returns", "0x802", "fcntl", "socket:0x800", "3"}, hosts: "ok"},
		{name: "descriptor of a socket that programs inherit", probe: []string{"returns", "0", "fcntl", "socket:0x800", "1"}, hosts: "ok"},
		{name: "descriptor of a socket that they do not", probe: []string{"returns", "1", "fcntl", "socket:0x80800", "1"}, hosts: "ok"},
		{name: "signals meanwhile", probe: []string{"signals"}, hosts: "ok"},
		{name: "a server in the sandbox", outside: true, probe: []string{"a server in the sandbox"}, hosts: "ok"},
		{name: "bind a local name as long as an address of IPv4", outside: true, probe: []string{"bind", "13-characters"}, hosts: "ok"},
		{name: "bind a local name as long as an address of IPv6", outside: true, probe: []string{"bind", "twenty-five-characters-xx"}, hosts: "ok"},
	}},
}

// TestHostsOnlyThere says which sandboxes have hosts, and what a command there sees of them.
func TestHostsOnlyThere(t *testing.T) {
	h := confineHosts(t, "/", nil, echo)
	defer h.Close()
	online := write()
	online.NetworkAccess = true
	for _, tt := range []struct {
		options box.Options
		policy  protocol.SandboxPolicy
	}{{box.Options{}, write()}, {box.Options{Hosts: true}, readOnly}, {box.Options{Hosts: true}, online}, {box.Options{Hosts: true, Helper: []string{"true"}}, write()}} {
		c := must.Get(box.New(tt.options).Confine(tt.policy, "/", nil))(t)
		must.Equal(t, fmt.Sprintf("%+v with %+v has hosts", tt.policy, tt.options), false, c.Hosts() != nil)
	}
	const at = "http://127.0.0.1:3128"
	direct := ""
	if box.RoomsAvailable() == nil {
		direct = "localhost,127.0.0.1,::1"
	}
	must.Equal(t, "with hosts", []string{
		"A=1", "NO_PROXYX=y", "NODE_USE_ENV_PROXY=1", "NO_PROXY=" + direct, "no_proxy=" + direct, "HTTP_PROXY=" + at, "http_proxy=" + at, "HTTPS_PROXY=" + at, "https_proxy=" + at,
		"ALL_PROXY=" + at, "all_proxy=" + at, "CODEX_SANDBOX_NETWORK_DISABLED=1",
	}, h.Environ([]string{"A=1", "HTTPS_PROXY=http://user:secret@corp:1", "no_proxy=x", "NO_PROXYX=y"}))
	// The server's own functions, such as a patch, and git have no launcher.
	err := h.Do(func() error { _, err := given(0); return err })
	must.Equal(t, "a function", true, errors.Is(err, unix.EPERM))
}

// TestHostsEnd ends commands with open sockets in every way. All sockets are closed then.
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
			var open atomic.Int32
			h := confineHosts(t, "/", nil, func(c net.Conn) {
				open.Add(1)
				defer open.Add(-100)
				echo(c)
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var left run.Leftovers // the child has the socket, still
			defer left.Close()
			_, _ = boxtest.Starter(t).Run(ctx, run.Spec{
				Argv: tt.argv, Dir: "/", Env: h.Environ([]string{"PATH=/usr/bin:/bin"}), Confinement: h, Leftovers: &left, Timeout: time.Minute,
			}, func(_ protocol.OutputStream, parent []byte) {
				launcher := must.Get(strconv.Atoi(strings.TrimSpace(string(parent))))(t)
				if launcher == 1 { // the first process of the rooms
					launcher = childOf(t, os.Getpid())
				}
				tt.end(launcher, cancel)
			})
			h.Close()
			must.Equal(t, "sockets that were served and closed", tt.want, open.Load())
		})
	}
}
