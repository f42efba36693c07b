//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// lacks says what this kernel lacks for the tier, nil when nothing.
func (t Tier) lacks() error {
	if landlockABI() == 0 {
		return unavailable("the kernel has no Landlock, or it is switched off")
	}
	if !seccompAvailable() {
		return unavailable("the kernel has no seccomp filters")
	}
	switch t {
	case "", TierThread:
		return nil
	case TierNamespaces:
		return tryNamespaces()
	}
	return unavailable("no tier is called %q", string(t))
}

// rules are a confinement in the kernel's terms.
type rules struct {
	ruleset *os.File // of Landlock
	filter  program
	sparing program // the filter for a command that this process starts
}

// compile makes the rules. They hold the writable folders themselves, whatever
// takes their names later.
func (c *Confinement) compile() error {
	abi := landlockABI()
	fd, err := newRuleset(abi, c.roots)
	if err != nil {
		return err
	}
	c.rules = rules{
		ruleset: os.NewFile(uintptr(fd), "landlock ruleset"), // closed when nobody needs it
		filter:  filter(c.policy.NetworkAccess, abi < abiTruncate, false),
		sparing: filter(c.policy.NetworkAccess, abi < abiTruncate, true),
	}
	return nil
}

// restrict puts the confinement on the calling thread, for good.
func (c *Confinement) restrict(filter program) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if err := restrictSelf(int(c.rules.ruleset.Fd())); err != nil {
		return err
	}
	return installFilter(filter)
}

func (c *Confinement) start(cmd *exec.Cmd) error {
	if c.tier == TierNamespaces {
		return c.startInNamespaces(cmd)
	}
	return c.Do(cmd.Start)
}

// Do runs f confined by the first tier: its own system calls, and all of the
// processes that it starts, but none of goroutines that it starts.
func (c *Confinement) Do(f func() error) error {
	if len(c.helper) > 0 {
		return unavailable("a helper confines programs alone")
	}
	done := make(chan error, 1)
	onThread(func() {
		err := hideServer()
		if err == nil {
			err = c.restrict(c.rules.sparing.sparing(unix.Gettid()))
		}
		if err != nil {
			done <- fmt.Errorf("sandbox: %w", err)
			return
		}
		done <- f()
	})
	return <-done
}

// onThread runs f on an OS thread that ends when f returns. The main thread
// would never end, so it is held back until another is found.
func onThread(f func()) {
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
