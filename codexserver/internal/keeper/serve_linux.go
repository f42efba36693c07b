package keeper

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socketFD is where a keeper finds the socket to the server.
const socketFD = 3

// lastGrace is how long a keeper without a server tries to kill what is left.
const lastGrace = 30 * time.Second

// Main makes this process a keeper and does not return if it was started as
// one; otherwise it returns at once. It must come before anything else that the
// program does.
func Main(start Start) {
	if len(os.Args) != 1 || os.Args[0] != Name {
		return
	}
	code := 0
	if err := serve(start); err != nil {
		code = 1
	}
	syscall.Exit(code) // at once: what ran is gone
}

func serve(start Start) error {
	if err := prepare(); err != nil {
		start = func(*exec.Cmd, []byte, []*os.File) error { return fmt.Errorf("prepare a keeper: %w", err) }
	}
	link, err := linkOf(socketFD)
	if err != nil {
		return err
	}
	s := &service{link: link, start: start, inbox: make(chan message)}
	go s.read()
	for m := range s.inbox {
		// The end of a command that is gone has no effect.
		if m.request.Start != nil && !s.keep(*m.request.Start, m.files) {
			break
		}
		debug.SetGCPercent(-1)
		runtime.GC() // to its end
	}
	return nil
}

// prepare makes this process fit to keep commands.
func prepare() error {
	_ = os.WriteFile("/proc/self/comm", []byte(Name), 0) // for those who look
	// Neither the socket nor what the server inherited itself is for commands.
	if err := unix.CloseRange(socketFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	for n := 1; n < 32; n++ {
		// Only the server's end is a keeper's. Caught signals are commands'
		// defaults, ignored ones would stay ignored.
		if sig := syscall.Signal(n); sig != unix.SIGCHLD && !signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	// Starting a command holds a processor until the program is executed, which can
	// take for ever. A collection would wait for that processor, and all else for the
	// collection: there is none meanwhile.
	debug.SetGCPercent(-1)
	// With one processor a goroutine that waits for a process would keep others
	// from running for a while.
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	return nil
}

type message struct {
	request request
	files   []*os.File
}

// service is a keeper in its own process.
type service struct {
	link  *link
	start Start
	inbox chan message // closed when the server is gone
}

func (s *service) read() {
	defer close(s.inbox)
	for {
		var m message
		var err error
		if m.files, err = s.link.receive(&m.request); err != nil {
			return
		}
		s.inbox <- m
	}
}

// keep runs a command until nothing of it is left. It reports whether the
// server is still there.
func (s *service) keep(o start, files []*os.File) bool {
	cmd, err := s.begin(o, files)
	if err != nil {
		f := &failure{Text: err.Error()}
		errors.As(err, &f.Errno)
		return s.link.send(reply{Error: f}) == nil
	}
	pid := cmd.Process.Pid
	_ = cmd.Process.Release() // reap waits for it
	_ = s.link.send(reply{PID: pid})

	replies := make(chan reply, 2)
	gone := make(chan struct{})
	go reap(pid, replies, gone)
	inbox, ending := s.inbox, false
	var deadline <-chan time.Time
	var killing sync.WaitGroup
	for {
		select {
		case r := <-replies:
			if r.Gone {
				killing.Wait() // it must not see the next command
			}
			_ = s.link.send(r) // fails when the server is gone
			if r.Gone {
				return inbox != nil
			}
		case m, ok := <-inbox:
			closeAll(m.files)
			if !ok {
				inbox, deadline = nil, time.After(lastGrace)
			}
			if (!ok || m.request.End) && !ending {
				ending = true
				debug.SetGCPercent(100) // it can take long
				killing.Go(func() { end(gone) })
			}
		case <-deadline:
			return false
		}
	}
}

// begin starts a command. When the server goes meanwhile, or wants the command to
// end, it kills the child that is to become the command: executing a program can
// take for ever, and a child that was stopped before it does so stays.
func (s *service) begin(o start, files []*os.File) (*exec.Cmd, error) {
	defer closeAll(files)
	cmd, rest, err := o.command(files)
	if err != nil {
		return nil, err
	}
	started := make(chan struct{})
	go func() {
		defer close(started)
		err = withRoom(func() error { return s.start(cmd, o.Confinement, rest) })
	}()
	for {
		select {
		case <-started:
			return cmd, err
		case m, ok := <-s.inbox:
			closeAll(m.files)
			if !ok || m.request.End {
				end(started)
				<-started
				return cmd, err
			}
		}
	}
}

// command is the command that the message describes, and the files of its
// confinement.
func (o start) command(files []*os.File) (*exec.Cmd, []*os.File, error) {
	cmd := &exec.Cmd{Path: string(o.Path), Args: stringsOf(o.Args), Env: stringsOf(o.Env), Dir: string(o.Dir), SysProcAttr: o.Attr.sys()}
	next := func() (f *os.File) {
		if len(files) > 0 {
			f, files = files[0], files[1:]
		}
		return f
	}
	if o.Stdin {
		cmd.Stdin = next()
	}
	if o.Stdout {
		cmd.Stdout = next()
	}
	if o.Stderr {
		cmd.Stderr = next()
	}
	if o.Folder {
		folder := next()
		if folder == nil {
			return nil, nil, errors.New("keeper: the folder is missing")
		}
		cmd.Dir = fmt.Sprintf("/proc/self/fd/%d", folder.Fd())
	}
	if o.Extra < 0 || o.Extra > len(files) {
		return nil, nil, errors.New("keeper: descriptors are missing")
	}
	cmd.ExtraFiles = files[:o.Extra:o.Extra]
	return cmd, files[o.Extra:], nil
}

func stringsOf(words [][]byte) []string {
	list := make([]string, len(words)) // never nil, which would inherit
	for i, w := range words {
		list[i] = string(w)
	}
	return list
}

// reap collects this process's children, the command's first process pid and
// what was left to us, until there are no more.
func reap(pid int, replies chan<- reply, gone chan<- struct{}) {
	defer close(gone)
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD
			replies <- reply{Gone: true}
			return
		case ended == pid:
			s := syscall.WaitStatus(status)
			if childless() { // usual, and saves a message
				replies <- reply{Status: &s, Gone: true}
				return
			}
			replies <- reply{Status: &s}
		}
	}
}

// childless reports whether this process has no children.
func childless() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
		if !errors.Is(err, unix.EINTR) {
			return errors.Is(err, unix.ECHILD)
		}
	}
}
