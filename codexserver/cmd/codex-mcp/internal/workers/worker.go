package workers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httputil"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/go-json-experiment/json"
)

const (
	// startTimeout limits the time from the start of a worker until it is ready.
	startTimeout = 30 * time.Second
	// endTimeout limits the time that a worker has to end its work.
	endTimeout = 20 * time.Second
	// idleCheckTimeout limits the time that a worker has to answer an idle check.
	idleCheckTimeout = 5 * time.Second
)

// worker is the pool's handle of a worker's process.
type worker struct {
	proxy       *httputil.ReverseProxy
	dial        func(context.Context) (net.Conn, error)
	kill        func() error
	process     int
	exited      chan struct{} // closed when the process has ended
	drained     chan struct{} // closed when the worker has no running work any more
	idleAnswers chan bool     // the worker's answers to idle checks

	mu      sync.Mutex
	control io.WriteCloser // closing it makes the worker stop
}

// startProcess starts the worker of a user and waits until it is ready.
func (p *Pool) startProcess(name string) (*worker, error) {
	// Symbolic links may have changed since the server started.
	paths, err := resolvePaths(p.o.Home, p.o.Hidden, p.o.HTTP.Principals)
	if err != nil {
		return nil, err
	}
	if err := paths.clearTemp(name); err != nil {
		return nil, err
	}
	settings := p.o.Settings
	settings.Principal, settings.Home, settings.Folders = name, paths.homes[name], paths.folders[name]
	settings.Approver = p.o.HTTP.Principals[name].Approver
	settings.Record, settings.Trace = p.o.Record != nil, p.o.Trace != nil
	limits := p.o.HTTP.Principals[name].Limits
	settings.Turns, settings.Tasks = limits.Turns, limits.Tasks
	settings.Locked = p.o.HTTP.Locked(settings.Locked, name)
	if settings.Files, err = config.Hand(paths.server); err != nil {
		return nil, err
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	w := newWorker(p.log, challenger{p.o.Challenge, p.o.Settings.Metadata})
	control, status, err := w.launch(p, name, paths)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(startTimeout)
	err = errors.Join(control.SetWriteDeadline(deadline), status.SetReadDeadline(deadline))
	if err == nil {
		_, err = control.Write(append(text, '\n'))
	}
	lines := bufio.NewScanner(status) // it limits the length of a line
	if err == nil {
		err = readReady(lines)
	}
	if err != nil {
		w.end(0)
		status.Close()
		return nil, err
	}
	_ = errors.Join(control.SetWriteDeadline(time.Time{}), status.SetReadDeadline(time.Time{})) // pipes support deadlines
	p.running.Go(func() {
		defer status.Close()
		w.readStatus(lines)
	})
	return w, nil
}

// newWorker returns a worker without a process.
func newWorker(log *slog.Logger, c challenger) *worker {
	return &worker{proxy: newProxy(log, c), exited: make(chan struct{}), drained: make(chan struct{}), idleAnswers: make(chan bool, 1)}
}

// readReady reads the first message of a worker. It returns nil if the worker is ready,
// and otherwise the reason.
func readReady(lines *bufio.Scanner) error {
	more := lines.Scan()
	reason, failed := strings.CutPrefix(lines.Text(), errorPrefix)
	switch {
	case lines.Err() != nil:
		return lines.Err()
	case !more:
		return errors.New("the process ended before it was ready; its own output is above")
	case failed:
		return errors.New(reason)
	case lines.Text() != readyMessage:
		return errors.New("the process sent an unexpected message before it was ready")
	}
	return nil
}

// readStatus handles the messages of a worker until the worker ends or sends a line that is
// too long.
func (w *worker) readStatus(lines *bufio.Scanner) {
	drained := false
	for lines.Scan() {
		switch message := lines.Text(); message {
		case drainedMessage:
			if !drained {
				close(w.drained)
			}
			drained = true
		case idleMessage, busyMessage:
			select {
			case w.idleAnswers <- message == idleMessage:
			default: // the pool has not asked
			}
		}
	}
}

// launch starts the process, and returns the pool's ends of the control pipe and of the
// status pipe.
func (w *worker) launch(p *Pool, name string, paths *userPaths) (control, status *os.File, err error) {
	l, socket, err := listenWorker(paths.server)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	started := false
	defer func() {
		if !started {
			socket.close()
		}
	}()
	listener, err := l.File()
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	controlReader, control, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer controlReader.Close()
	status, statusWriter, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, control.Close())
	}
	defer statusWriter.Close()
	files := []*os.File{controlReader, statusWriter, listener} // in the order of controlFD, statusFD and listenerFD
	for _, file := range []*os.File{p.o.Record, p.o.Trace} {
		if file != nil {
			files = append(files, file)
		}
	}
	cmd := &exec.Cmd{Args: []string{Name}, Env: environ(os.Environ(), paths.homes[name]), Dir: paths.folders[name][0], Stderr: p.o.Stderr, ExtraFiles: files}
	if err := paths.enclosure(name).Start(cmd); err != nil {
		return nil, nil, errors.Join(err, control.Close(), status.Close())
	}
	started = true
	w.control, w.process, w.kill, w.dial = control, cmd.Process.Pid, cmd.Process.Kill, socket.dial
	p.running.Go(func() {
		defer close(w.exited)
		err := cmd.Wait()
		socket.close()
		p.log.Info("worker ended", "principal", name, "status", fmt.Sprint(err))
	})
	return control, status, nil
}

// environ returns the environment of a worker. It removes the variables that name temporary
// files and services of the user that runs the server.
func environ(all []string, home string) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"CODEX_HOME", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "TMPDIR", "XDG_RUNTIME_DIR"}, name)
	})
	return append(all, "CODEX_HOME="+home)
}

// alive reports whether the process is still running.
func (w *worker) alive() bool {
	select {
	case <-w.exited:
		return false
	default:
		return true
	}
}

// drain asks the worker to let running work end. It does not wait for that.
func (w *worker) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = io.WriteString(w.control, drainMessage+"\n") // fails if the worker has ended
}

// checkIdle asks the worker whether it is idle. It returns false if the worker does not
// answer in time.
func (w *worker) checkIdle() bool {
	select {
	case <-w.idleAnswers: // a late answer to an earlier check
	default:
	}
	w.mu.Lock()
	_, err := io.WriteString(w.control, checkIdleMessage+"\n")
	w.mu.Unlock()
	if err != nil {
		return false // the worker has ended
	}
	timer := time.NewTimer(idleCheckTimeout)
	defer timer.Stop()
	select {
	case idle := <-w.idleAnswers:
		return idle
	case <-w.exited:
	case <-timer.C:
	}
	return false
}

// end makes the worker stop, kills it after the timeout, and waits for its end.
func (w *worker) end(timeout time.Duration) {
	w.mu.Lock()
	w.control.Close()
	w.mu.Unlock()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-w.exited:
	case <-timer.C:
		_ = w.kill() // this also ends all other processes of the enclosure
		<-w.exited
	}
}
