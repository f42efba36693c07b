//go:build amd64 || arm64

package box

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
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
	limits  limits
	roots   *Roots
	set     *permission.Set // see [Confinement]
	layers  *Sandbox        // see [Confinement]
}

// compile makes the rules. They are about the folders themselves: one that takes the name of one later is not writable.
func (c *Confinement) compile() (err error) {
	abi := landlockABI()
	if c.policy.NetworkAccess {
		c.rules.limits |= network
	}
	if abi < abiTruncate {
		c.rules.limits |= truncate
	}
	if c.policy.Mode == protocol.SandboxReadOnly {
		c.rules.limits |= keepFiles
	}
	if c.set.Closed() {
		c.rules.limits |= closed
	}
	c.rules.roots, c.rules.layers, c.rules.set = &c.roots, c.layers, c.set
	var net uint64
	if c.hosts && abi >= abiNet { // the second lock beside the filter
		net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	c.rules.ruleset, err = newRuleset(abi, net, c.roots.folders, readable(c.set))
	return err
}

// apply is Apply without a helper. The words are the plan, and the descriptor is the Landlock ruleset. That of a command
// with rooms is its own, because the launcher adds to it.
func (r rules) apply(cmd *exec.Cmd) (string, error) {
	p, ruleset := plan{limits: r.limits}, r.ruleset
	if RoomsAvailable() == nil {
		p.limits |= rooms
		p.files = run.OriginalFiles()
		p.keepShm = inShm(append([]string{cmd.Dir, run.Value(cmd.Env, "TMPDIR")}, r.roots.Paths...)...)
		var err error
		if p.fixed, p.absent, err = r.roots.mounted(r.set); err != nil {
			return "", err
		}
		if !p.keepShm { // what is mounted there is covered, and cannot be found
			p.fixed = slices.DeleteFunc(p.fixed, func(f fixed) bool { return paths.Below(f.path, shmFolder) })
		}
		if r.layers != nil {
			p.layered = r.layers.layered(r.roots.Paths, cmd.Dir, cmd.Env)
			p.layered.caches = slices.DeleteFunc(p.layered.caches,
				func(cache string) bool { return !r.set.Plain(cache) })
		}
		if ruleset, err = newRuleset(landlockABI(), 0, r.roots.folders, readable(r.set)); err != nil {
			return "", err
		}
	}
	cmd.ExtraFiles = []*os.File{ruleset}
	return p.words(), nil
}

// Main must be the first statement of a program that starts commands. It returns, but not in a launcher.
func Main() {
	run.Main(func(words string, fd int, start func(*run.Rooms) error) error {
		p, err := readPlan(words)
		if err != nil {
			return fmt.Errorf("sandbox: the plan: %w", err)
		}
		if p.limits&rooms != 0 {
			rooms, err := p.rooms(fd)
			if err == nil {
				err = start(rooms)
			}
			_ = unix.Close(lockFD)
			return err
		}
		var s *supervisor
		if p.limits&hosts != 0 {
			s = &supervisor{server: fd + 1}
		}
		r := rules{ruleset: os.NewFile(uintptr(fd), "ruleset"), limits: p.limits}
		return r.supervised(s, func() error { return start(nil) })
	})
}

func (r rules) onThread(f func() error) error { return r.supervised(nil, f) }

// supervised runs f confined. S, unless it is nil, answers for the sockets until all that f starts has ended.
func (r rules) supervised(s *supervisor, f func() error) error {
	return onOwnThread(func() error {
		if err := r.restrict(s); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		return f()
	})
}

// restrict confines the calling thread, for which s answers unless it is nil. This cannot be undone.
func (r rules) restrict(s *supervisor) error {
	if err := HideProcess(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if err := dropPrying(); err != nil {
		return err
	}
	if err := restrictSelf(r.ruleset); err != nil {
		return err
	}
	f, flags := filter(r.limits, uint32(unix.Gettid())), uintptr(0)
	if s != nil {
		flags = listening
	}
	listener, err := installFilter(f, flags)
	if err == nil && s != nil {
		s.listener = listener
		go s.run() // ends with the last process of the command, or with this one
	}
	return err
}

// onOwnThread runs f on an OS thread that ends when f returns. The main thread would not, so another one runs f.
func onOwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // not unlocked, so that the thread ends
		if unix.Gettid() != unix.Getpid() {
			done <- f()
			return
		}
		elsewhere := make(chan struct{})
		go func() { done <- onOwnThread(func() error { close(elsewhere); return f() }) }()
		<-elsewhere
		runtime.UnlockOSThread()
	}()
	return <-done
}
