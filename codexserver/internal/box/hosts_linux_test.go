package box_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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

// onGiven tries something with a socket.
func onGiven(f func(fd int, args []string) error) func([]string) error {
	return func(a []string) error {
		fd, err := given(0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return f(fd, a)
	}
}

// connecting tries to connect a socket to an address of its bytes.
func connecting(address func(a []string) []byte) func([]string) error {
	return onGiven(func(fd int, a []string) error {
		b := address(a)
		return raw(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	})
}

// inet4 are the bytes of an address such as 127.0.0.1:80.
func inet4(text string) []byte {
	host, port, _ := net.SplitHostPort(text)
	n, _ := strconv.Atoi(port)
	return append([]byte{unix.AF_INET, 0, byte(n >> 8), byte(n)}, append(net.ParseIP(host).To4(), make([]byte, 8)...)...)
}

// hostProbes are what a command with hosts may try.
var hostProbes = map[string]func(args []string) error{
	"use":            func([]string) error { return use() },
	"connect":        connecting(func(a []string) []byte { return inet4(a[0]) }),
	"connect, long":  connecting(func(a []string) []byte { return append(inet4(a[0]), make([]byte, 112)...) }),
	"connect, short": connecting(func(a []string) []byte { return inet4(a[0])[:8] }),
	"connect by IPv6": connecting(func(a []string) []byte {
		v4 := inet4(a[0])
		return slices.Concat([]byte{unix.AF_INET6, 0}, v4[2:4], make([]byte, 14), []byte{0xff, 0xff}, v4[4:8], make([]byte, 4))
	}),
	"connect to nothing":   connecting(func([]string) []byte { return make([]byte, 16) }),
	"connect a local name": connecting(func([]string) []byte { return append([]byte{unix.AF_UNIX, 0}, "13 characters\x00"...) }),
	"connect, no memory": onGiven(func(fd int, _ []string) error {
		return raw(unix.SYS_CONNECT, uintptr(fd), 16, 16)
	}),
	"bind to IPv4": onGiven(func(fd int, _ []string) error { return unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}) }),
	"bind to IPv6": onGiven(func(fd int, _ []string) error {
		return unix.Bind(fd, &unix.SockaddrInet6{Addr: [16]byte{15: 1}})
	}),
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
	"listen": onGiven(func(fd int, _ []string) error { return unix.Listen(fd, 1) }),
	"accept": onGiven(func(fd int, _ []string) error { return closed(accept(fd)) }),
	"fast open": onGiven(func(fd int, a []string) error {
		b := inet4(a[0])
		_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 1, unix.MSG_FASTOPEN, uintptr(unsafe.Pointer(&b[0])), 16)
		return asError(errno)
	}),
	"fast open by a message": onGiven(func(fd int, _ []string) error {
		_, err := unix.SendmsgN(fd, []byte("x"), nil, &unix.SockaddrInet4{Port: 80, Addr: [4]byte{127, 0, 0, 1}}, unix.MSG_FASTOPEN)
		return err
	}),
	"option": onGiven(func(fd int, _ []string) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) }),
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
	"names": onGiven(func(fd int, _ []string) error { // as if it were a socket of TCP, also where there is little room
		own, err1 := unix.Getsockname(fd)
		peer, err2 := unix.Getpeername(fd)
		if got := fmt.Sprint(own, peer, errors.Join(err1, err2)); got != "&{3129 [127 0 0 1] {0 0 [0 0 0 0] [0 0 0 0 0 0 0 0]}} &{3128 [127 0 0 1] {0 0 [0 0 0 0] [0 0 0 0 0 0 0 0]}} <nil>" {
			return errors.New(got)
		}
		room, size := [8]byte{6: 7, 7: 7}, int32(6)
		if err := raw(unix.SYS_GETPEERNAME, uintptr(fd), uintptr(unsafe.Pointer(&room)), uintptr(unsafe.Pointer(&size))); err != nil || size != 16 || room != [8]byte{2, 0, 12, 56, 127, 0, 7, 7} {
			return fmt.Errorf("%v, %d: %w", room, size, err)
		}
		size = -1
		if err := raw(unix.SYS_GETPEERNAME, uintptr(fd), uintptr(unsafe.Pointer(&room)), uintptr(unsafe.Pointer(&size))); !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("a negative size: %w", err)
		}
		if err := raw(unix.SYS_GETPEERNAME, uintptr(fd), 16, 16); !errors.Is(err, unix.EFAULT) {
			return fmt.Errorf("no memory: %w", err)
		}
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(pair[0])
		defer unix.Close(pair[1])
		if name, err := unix.Getpeername(pair[0]); err != nil || fmt.Sprintf("%T", name) != "*unix.SockaddrUnix" {
			return fmt.Errorf("its own pair: %T, %w", name, err)
		}
		_, err = unix.Getsockname(0)
		if !errors.Is(err, unix.ENOTSOCK) {
			return fmt.Errorf("no socket: %w", err)
		}
		return nil
	}),
	"not dumpable": func([]string) error {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return err
		}
		defer unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
		return use()
	},
	"another thread changes the address": func(a []string) error {
		b, other, own := inet4("127.0.0.1:3128"), inet4(a[0]), inet4("127.0.0.1:3128")
		var stop atomic.Bool
		var changing sync.WaitGroup
		changing.Go(func() {
			for !stop.Load() {
				copy(b, other)
				copy(b, own)
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
	"descriptors": func([]string) error {
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

func accept(fd int) (int, error) {
	got, _, err := unix.Accept(fd)
	return got, err
}

// hostRow is the result of what a command with hosts tries. Rows with the same kind are one in SECURITY.md.
type hostRow struct {
	kind  string
	probe []string
	want  string
}

var hostRows = []hostRow{
	{"reach the server's proxy, which asks about each host", []string{"use"}, "ok"},
	{"", []string{"not dumpable"}, "ok"},
	{"", []string{"names"}, "ok"},
	{"", []string{"option"}, "ok"},
	{"", []string{"flags"}, "ok"},
	{"", []string{"signals"}, "ok"},
	{"", []string{"a server in the sandbox"}, "ok"},
	{"", []string{"bind a local name"}, "ok"},
	{"connect to another address, by IPv4 or IPv6, also one that changes meanwhile", []string{"connect", "@tcp"}, "EPERM"},
	{"", []string{"connect, long", "@tcp"}, "EPERM"},
	{"", []string{"connect, short", "@tcp"}, "EPERM"},
	{"", []string{"connect by IPv6", "@tcp"}, "EPERM"},
	{"", []string{"connect to nothing"}, "EPERM"},
	{"", []string{"connect a local name"}, "EPERM"},
	{"", []string{"connect, no memory"}, "EFAULT"},
	{"", []string{"dial", "tcp", "@tcp"}, "EPERM"},
	{"", []string{"dial", "udp", "127.0.0.1:53"}, "EPERM"},
	{"", []string{"dial", "unix", "@socket"}, "EPERM"},
	{"", []string{"dial", "unix", "@abstract"}, "EPERM"},
	{"", []string{"another thread changes the address", "@tcp"}, "ok"},
	{"", []string{"fast open", "@tcp"}, "EPERM"},
	{"", []string{"fast open by a message"}, "EISCONN"},
	{"bind, listen, accept", []string{"bind to IPv4"}, "EPERM"},
	{"", []string{"bind to IPv6"}, "EPERM"},
	{"", []string{"listen"}, "EINVAL"},
	{"", []string{"accept"}, "EINVAL"},
	{"make a datagram, raw, ICMP, SCTP, MPTCP, netlink or vsock socket", []string{"call", "socket", "2", "2", "0"}, "EPERM"},
	{"", []string{"call", "socket", "2", "2", "1"}, "EPERM"},
	{"", []string{"call", "socket", "2", "3", "1"}, "EPERM"},
	{"", []string{"call", "socket", "2", "1", "132"}, "EPERM"},
	{"", []string{"call", "socket", "2", "1", "262"}, "EPERM"},
	{"", []string{"call", "socket", "10", "1", "0"}, "EPERM"},
	{"", []string{"call", "socket", "10", "2", "58"}, "EPERM"},
	{"", []string{"call", "socket", "16", "3", "0"}, "EPERM"},
	{"", []string{"call", "socket", "40", "1", "0"}, "EPERM"},
	{"", []string{"call", "socketpair", "2", "1", "0", "words:0"}, "EPERM"},
	{"hand descriptors to the server", []string{"descriptors"}, "ok"}, // they are dropped
	{"have more than 64 sockets at a time", []string{"many"}, "ok"},   // which it checks
}

// TestHosts tries what a command with hosts may try. Nobody outside is reached, and the server keeps no descriptor.
func TestHosts(t *testing.T) {
	processes, others := boxtest.Starter(t), others(t)
	outside := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	others["@tcp"] = outside.Addr().String()
	reached := make(chan string, 100)
	go func() {
		for {
			c, err := outside.Accept()
			if err != nil {
				close(reached)
				return
			}
			reached <- c.RemoteAddr().String()
			c.Close()
		}
	}()
	var all []attempt
	for _, row := range hostRows {
		all = append(all, attempt{fixture(t), row.probe})
	}
	try(t, processes, write(), others, all[:1], echo) // what is opened once
	before := descriptors(t)
	for i, got := range try(t, processes, write(), others, all, echo) {
		must.Equal(t, fmt.Sprint(all[i].Probe), hostRows[i].want, got)
	}
	const some = 10 // of its own, which come and go; a command has handed it 400
	for until := time.Now().Add(10 * time.Second); descriptors(t) > before+some && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		// The ends of commands are read after their results.
	}
	if after := descriptors(t); after > before+some {
		t.Errorf("the server had %d descriptors, and has %d", before, after)
	}
	outside.Close()
	for who := range reached {
		t.Errorf("somebody was reached: %s", who)
	}
}

func descriptors(t *testing.T) int {
	runtime.GC()
	return len(must.Get(os.ReadDir("/proc/self/fd"))(t))
}

// TestHostsTable tries every row of the table of workspace-write with hosts. It is the same but for sockets of TCP.
func TestHostsTable(t *testing.T) {
	processes, others := boxtest.Starter(t), others(t)
	others["@suid"] = os.Getenv(suidVar)
	var rows []row
	var all []attempt
	for _, kind := range kinds {
		for _, row := range kind.rows {
			if row.user && (os.Getuid() == 0 || others["@suid"] == "") || row.root && os.Getuid() != 0 || row.initial {
				continue
			}
			rows, all = append(rows, row), append(all, attempt{fixture(t), row.probe})
		}
	}
	for i, got := range try(t, processes, write(), others, all, echo) {
		want := rows[i].write
		if rows[i].name == "socket inet" || rows[i].name == "socket inet with other flags" {
			want = "ok"
		}
		if !slices.Contains(strings.Split(want, "|"), got) {
			t.Errorf("%s: %s, want %s", rows[i].name, got, want)
		}
	}
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
	for name, end := range map[string]func(launcher int){
		"by itself, with a child that stays": nil,
		"the server ends it":                 func(int) {},
		"the launcher is killed":             func(launcher int) { _ = syscall.Kill(launcher, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			h := confineHosts(t, write(dir), dir)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var open atomic.Int32
			script := `exec 3<>/dev/tcp/127.0.0.1/3128 && echo x >&3 && read -r x <&3; (setsid sleep 60 3<&3 &) ; echo $PPID > launcher.tmp; mv launcher.tmp launcher`
			if end != nil {
				script += "; sleep 60"
				go func() {
					defer cancel()
					for range 1000 {
						if b, err := os.ReadFile(filepath.Join(dir, "launcher")); err == nil {
							pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
							if end(pid); name != "the server ends it" {
								time.Sleep(time.Second) // Run returns by itself
							}
							return
						}
						time.Sleep(5 * time.Millisecond)
					}
				}()
			}
			res, _ := boxtest.Starter(t).Run(ctx, run.Spec{
				Argv: []string{"bash", "-c", script}, Dir: dir, Env: h.Environ([]string{"PATH=/usr/bin:/bin"}), Confinement: h, Timeout: time.Minute,
				Sockets: func(ctx context.Context, c net.Conn) {
					open.Add(1)
					defer open.Add(-100)
					echo(ctx, c)
				},
			}, nil)
			must.Equal(t, "sockets that were served and closed", int32(-99), open.Load())
			if end == nil && res.ExitCode != 0 {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestHostsPage compares the table in SECURITY.md with the rows that are tried.
func TestHostsPage(t *testing.T) {
	page := must.Get(os.ReadFile("../../../SECURITY.md"))(t)
	_, rest, _ := strings.Cut(string(page), "\n| a command that may ask for hosts tries to |")
	table, _, _ := strings.Cut(rest, "\n\n")
	var got, want []string
	for _, line := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if name := strings.TrimSpace(cells[0]); !strings.HasPrefix(name, "-") {
			got = append(got, name+": "+strings.TrimSpace(cells[1]))
		}
	}
	for _, row := range hostRows {
		verdict := denied
		if row.want == "ok" && len(want) == 0 {
			verdict = "allowed"
		}
		if row.kind != "" {
			want = append(want, row.kind+": "+verdict)
		}
	}
	must.Equal(t, "what was tried and SECURITY.md", want, got)
}

func TestHostsAsUser(t *testing.T) {
	confineHosts(t, write(), "/")
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { boxtest.AsUser(t, cmd, os.TempDir()) }, func(t *testing.T) {
		t.Run("Hosts", TestHosts)
		t.Run("HostsTable", TestHostsTable)
	})
}
