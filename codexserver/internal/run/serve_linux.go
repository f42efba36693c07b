package run

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socketFD is the keeper's descriptor of the socket to the server.
const socketFD = 3

// lastGrace is how long a keeper without a server tries to kill its command.
const lastGrace = 30 * time.Second

// name is os.Args[0] of this program when it is started as a keeper.
const name = "codex-mcp-keeper"

// Main runs a keeper and does not return if this process was started as one. Otherwise it
// returns at once. It must be the first statement of the program.
func Main(start Start) {
	mainCalled.Store(true)
	if len(os.Args) != 2 || os.Args[0] != name {
		return
	}
	code := 0
	if err := serve(start, os.Args[1]); err != nil {
		code = 1
	}
	syscall.Exit(code) // at once, since the command is gone
}

func serve(start Start, text string) error {
	m, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return err
	}
	mark(m).set()
	if err := becomeKeeper(); err != nil {
		start = func(*exec.Cmd, []byte, []*os.File) error { return fmt.Errorf("prepare a keeper: %w", err) }
	}
	link, err := linkOf(socketFD)
	if err != nil {
		return err
	}
	s := &service{link: link, start: start, inbox: make(chan message)}
	go s.read()
	for m := range s.inbox {
		// A request to end a command that is gone has no effect.
		if m.request.Start != nil && !s.keep(*m.request.Start, m.files) {
			break
		}
		collect(maxHeap)
	}
	return nil
}

// becomeKeeper sets up this process as a keeper.
func becomeKeeper() error {
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0) // shown by ps
	// Commands must not inherit the socket, or descriptors that the server inherited.
	if err := SealDescriptors(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	for n := 1; n < 32; n++ {
		// No signal ends a keeper, only the end of the server. Catch the signals instead of
		// ignoring them: commands inherit ignored signals, but not caught ones.
		if sig := syscall.Signal(n); sig != unix.SIGCHLD && !signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	// Starting a command occupies a scheduler processor until the program is executed,
	// which can take forever. A garbage collection would wait for that processor, and
	// everything else for the collection. So there is none meanwhile.
	debug.SetGCPercent(-1)
	// With only one processor, a goroutine that waits for a process would block others
	// for a while. Each further one could need a thread.
	runtime.GOMAXPROCS(2)
	makeThreads(threads)
	return nil
}

// threads is how many threads a keeper needs at most: one for each processor, and for each
// system call that blocks: to start a command, to end it, to wait for it and for signals.
const threads = 8

// makeThreads makes the runtime start n threads, which it keeps. While a keeper starts a
// command it has the command's limit of processes. If the command has used that up
// before the keeper runs again, the runtime can start no thread, and would end the process.
func makeThreads(n int) {
	var started, ended sync.WaitGroup
	release := make(chan struct{})
	for range n {
		started.Add(1)
		ended.Go(func() {
			runtime.LockOSThread() // so that the others need threads of their own
			defer runtime.UnlockOSThread()
			started.Done()
			<-release
		})
	}
	started.Wait()
	close(release)
	ended.Wait()
}

// SealDescriptors prevents commands from inheriting the descriptors that this process
// inherited, except standard input, output and error. A program calls it once, before it
// opens any file.
func SealDescriptors() error {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	// Before Linux 5.9 the call is missing, and containers forbid it.
	return sealEach()
}

// sealEach does the same with each descriptor.
func sealEach() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("the files that commands would inherit: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
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

// keep runs a command until all its processes have ended. It reports whether the server
// is still connected.
func (s *service) keep(o start, files []*os.File) bool {
	cmd, err := s.begin(o, files)
	if err != nil {
		f := &failure{Text: err.Error()}
		errors.As(err, &f.Errno)
		return s.link.send(reply{Error: f}) == nil
	}
	pid := cmd.Process.Pid
	_ = cmd.Process.Release() // reap waits for the process
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
				killing.Wait() // it must not kill the next command
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
			if m.request.Terminate {
				signalAll(descendants(processes(), os.Getpid()), unix.SIGTERM)
			}
			if (!ok || m.request.End) && !ending {
				ending = true
				debug.SetGCPercent(100) // killing can take long
				killing.Go(func() { end(gone) })
			}
		case <-deadline:
			return false
		}
	}
}

// maxHeap is the size in bytes of the heap of a keeper that is not collected: more than twenty commands leave. A
// collection takes longer than the start of a command.
const maxHeap = 1 << 20

// collect collects garbage between two commands, if the heap is larger than most bytes or the end of the last one has
// let the collector run. Afterwards it does not run.
func collect(most uint64) {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); debug.SetGCPercent(-1) >= 0 || m.HeapAlloc > most {
		runtime.GC() // returns when the collection is complete
	}
}

// begin starts a command. If the server disconnects meanwhile, or requests the end, begin
// kills the child before it becomes the command. Executing a program can take forever, and
// the child may have been stopped before.
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

// command returns the command that the message describes, and the files of its
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
			return nil, nil, errors.New("keeper: the order has no descriptor of the folder")
		}
		cmd.Dir = fmt.Sprintf("/proc/self/fd/%d", folder.Fd())
	}
	if o.Extra < 0 || o.Extra > len(files) {
		return nil, nil, errors.New("keeper: the order has too few descriptors")
	}
	cmd.ExtraFiles = files[:o.Extra:o.Extra]
	return cmd, files[o.Extra:], nil
}

func stringsOf(words [][]byte) []string {
	list := make([]string, len(words)) // not nil, which would mean the keeper's environment
	for i, w := range words {
		list[i] = string(w)
	}
	return list
}

// reap collects the children of this process, the command's first process pid and its
// orphans, until there are no more.
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
			if childless() { // the usual case; one message is enough
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
