//go:build cluster

package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
)

// inNetwork runs a test in a process with a network of its own, where it may make networks for the
// machines and cables between them. Nothing of that is left when the process has ended.
func inNetwork(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	inNamespaces(t, 0, f)
}

// inNamespaces does this in further namespaces, too, which are flags of clone.
func inNamespaces(t *testing.T, further uintptr, f func(t *testing.T)) {
	t.Helper()
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) {
		dir := clusterPrograms(t) // no network is needed later
		cmd.Env = append(cmd.Env, builtPrograms+"="+dir)
		left := time.Duration(0) // no limit
		if deadline, ok := t.Deadline(); ok {
			left = max(time.Until(deadline)-time.Second, time.Second) // it ends before this process
		}
		cmd.Args = append(cmd.Args, "-test.timeout="+left.String())
		flag.Visit(func(f *flag.Flag) {
			if !strings.HasPrefix(f.Name, "test.") {
				cmd.Args = append(cmd.Args, "-"+f.Name+"="+f.Value.String())
			}
		})
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | further, Unshareflags: syscall.CLONE_NEWNS} // with disks of the machines
		if os.Geteuid() != 0 {                                                                                                // then only in a user namespace
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
		}
	}, func(t *testing.T) {
		ip(t, "link", "set", "lo", "up")
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil { // between machines
			t.Fatal(err)
		}
		f(t)
	})
}

// ip runs the program of iproute2.
func ip(t *testing.T, args ...string) {
	t.Helper()
	mustRun(t, exec.Command(ipProgram(), args...))
}

// ipProgram returns the program of iproute2, whose folder is not in the PATH of every user.
func ipProgram() string {
	for _, path := range []string{"/usr/sbin/ip", "/sbin/ip"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "ip"
}

func mustRun(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", cmd.Args, err, out)
	}
}

// newNetwork makes a network with nothing in it. It returns a process in it, which ends with the test.
func newNetwork(t *testing.T) (process string) {
	t.Helper()
	cmd := exec.Command("cat")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatalf("a network of its own: %v", err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	process = fmt.Sprint(cmd.Process.Pid)
	mustRun(t, enter(t, process, ipProgram(), "link", "set", "lo", "up"))
	return process
}

// enter returns a command in the network of a process.
func enter(t *testing.T, process string, args ...string) *exec.Cmd {
	t.Helper()
	return exec.Command("nsenter", append([]string{"--net=/proc/" + process + "/ns/net", "--"}, args...)...)
}

// The networks between the test and the machines: NATS and the other machines are in the first one, clients and the model
// provider are in the second one.
const (
	natsNetwork  = 77
	otherNetwork = 78
)

// addressAt returns an address at an end of a cable: that of the machine, or the other one.
func addressAt(network, machine int, inside bool) string {
	return fmt.Sprintf("10.%d.%d.%d", network, machine, map[bool]int{false: 1, true: 2}[inside])
}

// cable connects the network of a machine with that of the test.
type cable struct {
	process          string // in the machine's network
	outside, inside  string // the names of its ends
	address, machine string // those of the ends
}

// newCable connects the network of a process.
func newCable(t *testing.T, process string, network, machine, number int) cable {
	t.Helper()
	c := cable{process, fmt.Sprintf("m%dc%d", machine, number), fmt.Sprintf("eth%d", number), addressAt(network, machine, false), addressAt(network, machine, true)}
	ip(t, "link", "add", c.outside, "type", "veth", "peer", "name", c.inside, "netns", process)
	ip(t, "addr", "add", c.address+"/30", "dev", c.outside)
	ip(t, "link", "set", c.outside, "up")
	mustRun(t, enter(t, process, ipProgram(), "addr", "add", c.machine+"/30", "dev", c.inside))
	mustRun(t, enter(t, process, ipProgram(), "link", "set", c.inside, "up"))
	until(t, "a new cable is not whole", c.whole)
	return c
}

// way says in which direction nothing passes. It is part of the name of a fault.
type way string

const (
	bothWays way = ""
	toIt     way = " and is still heard"
	fromIt   way = " and still hears"
)

// pull pulls out the cable, or makes that nothing passes one way: what is sent there has the address of
// another device. Nobody is told. Or it plugs the cable in.
func (c cable) pull(t *testing.T, out bool, w way) {
	t.Helper()
	wrong := func(address, device string) []string {
		if !out {
			return []string{"neigh", "del", address, "dev", device}
		}
		return []string{"neigh", "replace", address, "lladdr", "02:00:00:00:00:01", "nud", "permanent", "dev", device}
	}
	switch w {
	case toIt:
		ip(t, wrong(c.machine, c.outside)...)
	case fromIt:
		mustRun(t, enter(t, c.process, append([]string{ipProgram()}, wrong(c.address, c.inside)...)...))
	default:
		ip(t, "link", "set", c.outside, map[bool]string{true: "down", false: "up"}[out])
	}
	until(t, c.outside+": the cable is not "+map[bool]string{true: "out", false: "in"}[out], func() bool { return c.whole() != out })
}

// whole reports whether an answer comes over the cable: the machine refuses to connect to a port
// that nobody has.
func (c cable) whole() bool {
	conn, err := net.DialTimeout("tcp", c.machine+":1", 100*time.Millisecond)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil || errors.Is(err, syscall.ECONNREFUSED)
}
