//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// helperName is os.Args[0] of this program when it sets up namespaces and then becomes a
// command.
const helperName = "codex-mcp-namespaces"

// helperSpec is its os.Args[1].
type helperSpec struct {
	Policy  protocol.SandboxPolicy `json:"policy"`
	Roots   []rootSpec             `json:"roots"`
	Protect []string               `json:"protect"`
	Path    string                 `json:"path"`
	User    int                    `json:"user"`
	Group   int                    `json:"group"`
}

// startInNamespaces starts this program again in new namespaces, where it becomes the
// command.
func (c *Confinement) startInNamespaces(cmd *exec.Cmd) error {
	if err := c.enterNamespaces(cmd); err != nil {
		return err
	}
	return cmd.Start()
}

// enterNamespaces changes cmd so that it starts this program in new namespaces, which
// then becomes the command.
func (c *Confinement) enterNamespaces(cmd *exec.Cmd) error {
	spec, err := json.Marshal(helperSpec{
		Policy: c.policy, Roots: c.roots.specs(), Protect: c.protect, Path: cmd.Path, User: os.Geteuid(), Group: os.Getegid(),
	})
	if err != nil {
		return err
	}
	cmd.Args = append([]string{helperName, string(spec)}, cmd.Args...)
	cmd.Path = "/proc/self/exe"
	attr := cmd.SysProcAttr
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	if !c.policy.NetworkAccess {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	cmd.SysProcAttr = attr
	return nil
}

// tryNamespaces returns an error that names what this system lacks for the second tier,
// or nil.
func tryNamespaces() error {
	if err := proc.Ready(); err != nil {
		return unavailable("namespaces: %v", err)
	}
	c := &Confinement{policy: protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, tier: TierNamespaces}
	cmd := &exec.Cmd{Path: "/bin/true", Args: []string{"true"}, Dir: "/", Env: []string{}}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	err := c.startInNamespaces(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return unavailable("namespaces: %v %s", err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// Main must be the first statement of a program that uses [TierNamespaces] or keepers. It
// does not return in a process that was started to become a confined command or a keeper
// of commands. In any other it returns at once.
func Main() {
	proc.Main(startOrdered)
	enclosureMain()
	if len(os.Args) < 3 || os.Args[0] != helperName {
		return
	}
	runtime.LockOSThread() // each thread has capabilities and restrictions of its own
	err := becomeConfined(os.Args[1], os.Args[2:])
	fmt.Fprintf(os.Stderr, "sandbox: %v\n", err)
	if errors.Is(err, os.ErrNotExist) {
		os.Exit(127)
	}
	os.Exit(126)
}

func becomeConfined(text string, argv []string) error {
	var spec helperSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	if err := mapIDs(spec.User, spec.Group); err != nil {
		return err
	}
	roots, err := limitMounts(spec.Roots, spec.Protect)
	if err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	c := &Confinement{policy: spec.Policy, roots: Roots{folders: roots}}
	if err := c.compile(); err != nil {
		return err
	}
	f := c.rules.filterKey
	f.ownIPC = true
	if err := c.restrict(filter(f)); err != nil {
		return err
	}
	if err := installFilter(limitLock()); err != nil {
		return err
	}
	return unix.Exec(spec.Path, argv, os.Environ())
}

// mapIDs keeps the user and the group as they are outside. The process does this itself:
// it is hidden until it executes a program, so the server cannot do it.
func mapIDs(user, group int) error {
	for _, file := range []struct{ name, content string }{
		{"setgroups", "deny"},
		{"uid_map", fmt.Sprintf("%d %[1]d 1", user)},
		{"gid_map", fmt.Sprintf("%d %[1]d 1", group)},
	} {
		if err := os.WriteFile("/proc/self/"+file.name, []byte(file.content), 0); err != nil {
			return fmt.Errorf("map user and group: %w", err)
		}
	}
	return nil
}

// dropCapabilities drops the capabilities that the mounts needed. Those of a user
// namespace have no effect outside it, but could undo the mounts.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	// Only root would regain them by executing a program.
	for capability := uintptr(0); os.Getuid() == 0 && capability <= unix.CAP_LAST_CAP; capability++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("bounding capabilities: %w", err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}
