//go:build amd64 || arm64

package box

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

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
		ruleset:   os.NewFile(uintptr(fd), "landlock ruleset"), // closed when it is no longer needed
		filterKey: filterKey{network: c.policy.NetworkAccess, truncate: abi < abiTruncate, readOnly: c.policy.Mode == protocol.SandboxReadOnly},
	}
	return nil
}

// The words that determine the filter.
const (
	confined = "confined"
	network  = " network"
	truncate = " truncate"
	readOnly = " read-only"
)

// apply is Apply without a helper. The words determine the filter, and the descriptor is the
// Landlock ruleset.
func (c *Confinement) apply(cmd *exec.Cmd) (string, error) {
	var words strings.Builder
	words.WriteString(confined)
	for word, has := range map[string]bool{network: c.rules.network, truncate: c.rules.truncate, readOnly: c.rules.readOnly} {
		if has {
			words.WriteString(word)
		}
	}
	cmd.ExtraFiles = []*os.File{c.rules.ruleset}
	return words.String(), nil
}

// Main must be the first statement of a program that starts commands. It does not return in a
// process that was started to keep commands. In any other it returns at once.
func Main() {
	run.Main(func(words string, ruleset *os.File, start func() error) error {
		if !strings.HasPrefix(words, confined) {
			return errors.New("sandbox: the order does not have a filter")
		}
		has := func(word string) bool { return strings.Contains(words, word) }
		return rules{ruleset, filterKey{network: has(network), truncate: has(truncate), readOnly: has(readOnly)}}.onThread(start)
	})
}

func (c *Confinement) start(cmd *exec.Cmd) error { return c.rules.onThread(cmd.Start) }

// Do runs f confined. That covers f's own system calls, and not
// goroutines that it starts. f must not start processes: it may use openat2, with which
// they could make setuid files.
func (c *Confinement) Do(f func() error) error {
	if len(c.helper) > 0 {
		return unavailable("a helper confines only programs")
	}
	own := c.rules
	own.function = true
	return own.onThread(f)
}

func (c *Confinement) read(f func() error) error { return c.Do(f) }

// onThread runs f on a confined thread.
func (r rules) onThread(f func() error) error {
	done := make(chan error, 1)
	onOwnThread(func() {
		if err := r.restrict(); err != nil {
			done <- fmt.Errorf("sandbox: %w", err)
			return
		}
		done <- f()
	})
	return <-done
}

// restrict confines the calling thread. This cannot be undone.
func (r rules) restrict() error {
	if err := HideProcess(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if err := dropPrying(); err != nil {
		return err
	}
	if err := restrictSelf(int(r.ruleset.Fd())); err != nil {
		return err
	}
	r.thread = uint32(unix.Gettid())
	return installFilter(filter(r.filterKey))
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
