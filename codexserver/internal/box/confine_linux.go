//go:build amd64 || arm64

package box

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"golang.org/x/sys/unix"
)

// lacks returns an error that names what this kernel lacks, or nil.
func lacks() error {
	if landlockABI() == 0 {
		return unavailable("the kernel has no Landlock, or it is switched off")
	}
	if !seccompAvailable() {
		return unavailable("the kernel has no seccomp filters")
	}
	return nil
}

// rules are a confinement in the kernel's terms.
type rules struct {
	ruleset *os.File // of Landlock
	filterKey
}

// compile makes the rules. They refer to the writable folders themselves: a folder that
// takes the name of one later does not become writable.
func (c *Confinement) compile() error {
	abi := landlockABI()
	fd, err := newRuleset(abi, c.roots.folders)
	if err != nil {
		return err
	}
	c.rules = rules{
		ruleset: os.NewFile(uintptr(fd), "landlock ruleset"), // closed when it is no longer needed
		filterKey: filterKey{
			Network: c.policy.NetworkAccess, Truncate: abi < abiTruncate, ReadOnly: c.policy.Mode == protocol.SandboxReadOnly,
		},
	}
	return nil
}

// restrict confines the calling thread. This cannot be undone.
func (c *Confinement) restrict(filter bpf) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if err := dropPrying(); err != nil {
		return err
	}
	if err := restrictSelf(int(c.rules.ruleset.Fd())); err != nil {
		return err
	}
	return installFilter(filter)
}

// Main must be the first statement of a program that starts commands. It does not return in a
// process that was started to keep commands. In any other it returns at once.
func Main() { run.Main(startOrdered) }

func (c *Confinement) start(cmd *exec.Cmd) error {
	return c.onThread(c.commandFilter(), cmd.Start)
}

// commandFilter is the filter for a thread that starts a command.
func (c *Confinement) commandFilter() bpf {
	f := c.rules.filterKey
	f.sparing = true
	return filter(f)
}

// Do runs f confined. That covers f's own system calls, and not
// goroutines that it starts. f must not start processes: it may use openat2, with which
// they could make setuid files.
func (c *Confinement) Do(f func() error) error {
	if len(c.helper) > 0 {
		return unavailable("a helper confines only programs")
	}
	own := c.rules.filterKey
	own.sparing, own.function = true, true
	return c.onThread(filter(own), f)
}

func (c *Confinement) read(f func() error) error { return c.Do(f) }

// onThread runs f on a confined thread.
func (c *Confinement) onThread(filter bpf, f func() error) error {
	done := make(chan error, 1)
	onOwnThread(func() {
		err := HideProcess()
		if err == nil {
			err = c.restrict(filter.sparing(unix.Gettid()))
		}
		if err != nil {
			done <- fmt.Errorf("sandbox: %w", err)
			return
		}
		done <- f()
	})
	return <-done
}

// onOwnThread runs f on an OS thread that ends when f returns. The main thread would not
// end, so it is blocked until another thread runs f.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread() // not unlocked, so that the thread ends
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		elsewhere := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(elsewhere)
			f()
		}()
		<-elsewhere
		runtime.UnlockOSThread()
	}()
}
