package workers

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httputil"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/telemetry"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/codexmcp/codexmcp/internal/workerlink"
	"github.com/go-json-experiment/json"
)

const (
	// startTimeout limits the time from the start of a worker until it is ready.
	startTimeout = 30 * time.Second
	// endTimeout limits the time that a worker has to end its work.
	endTimeout = 20 * time.Second
	// maxStatus limits the length of a worker's status, in bytes.
	maxStatus = 256 << 10
	// controlTimeout limits the time that a worker has to read a message.
	controlTimeout = 5 * time.Second
	// loadTimeout limits the time that a worker has to report its load.
	loadTimeout = 5 * time.Second
)

// worker is the pool's handle of a worker's process.
type worker struct {
	proxy   *httputil.ReverseProxy
	kill    func() error
	process int
	fence   *fence               // nil if the worker is not fenced
	fenced  uint64               // the number at the fence
	exited  chan struct{}        // closed when the process has ended
	drained chan struct{}        // closed when the worker has no running work any more
	loads   chan workerlink.Load // the worker's answers about its load
	asking  chan struct{}        // holds a token while the worker is asked
	began   begun                // what it was started with
	work    *work                // what it does

	connections *connections

	mu      sync.Mutex
	control io.WriteCloser // closing it makes the worker stop
}

// startProcess starts the worker of a user and waits until it is ready. It kills the worker if
// ctx ends before.
func (p *Pool) startProcess(ctx context.Context, name string) (*worker, error) {
	// Symbolic links may have changed since the server started.
	http := p.http.Load()
	paths, err := resolvePaths(p.o.Home, p.o.Program, p.o.Hidden, http.Principals)
	if err != nil {
		return nil, err
	}
	if err := paths.clearTemp(name); err != nil {
		return nil, err
	}
	settings := p.settingsOf(name, http, paths)
	settings.Record, settings.Trace, settings.Store = p.o.Record != nil, p.o.Trace != nil, p.keeps != nil
	if settings.Files, err = config.Hand(paths.server); err != nil {
		return nil, err
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	var kept store.Store
	if p.keeps != nil {
		if kept, err = p.keeps(ctx, name); err != nil {
			return nil, err
		}
	}
	w := newWorker(p.log, challenger{p.o.Challenge, p.o.Settings.Metadata})
	w.proxy.BufferPool = &p.copies
	w.began = begun{settings: p.settingsOf(name, http, paths), hidden: paths.enclosure(name).Hidden}
	control, status, err := w.launch(p, name, paths, kept)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = w.kill() })()
	deadline := time.Now().Add(startTimeout)
	err = errors.Join(control.SetWriteDeadline(deadline), status.SetReadDeadline(deadline))
	if err == nil {
		_, err = control.Write(append(text, '\n'))
	}
	lines := statuses(status)
	if err == nil {
		err = readReady(lines)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		w.end(0)
		status.Close()
		return nil, err
	}
	_ = errors.Join(control.SetWriteDeadline(time.Time{}), status.SetReadDeadline(time.Time{})) // pipes support deadlines
	p.running.Go(func() {
		defer status.Close()
		w.readStatus(lines, p.replay(name))
	})
	return w, nil
}

// settingsOf returns those settings of a user's worker that the configuration of the users sets.
func (p *Pool) settingsOf(name string, http *settings.HTTP, paths *userPaths) workerlink.Settings {
	s, user := p.o.Settings, http.Principals[name]
	s.Version, s.Principal, s.Home, s.Folders = workerlink.Version, name, paths.homes[name], paths.folders[name]
	s.Turns, s.Tasks = user.Limits.Turns, user.Limits.Tasks
	s.Locked = http.Locked(s.Locked, name)
	return s
}

// statuses returns the lines of a worker's status pipe.
func statuses(r io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxStatus)
	return lines
}

// newWorker returns a worker without a process.
func newWorker(log *slog.Logger, c challenger) *worker {
	return &worker{
		proxy: newProxy(log, c), exited: make(chan struct{}), drained: make(chan struct{}),
		loads: make(chan workerlink.Load, 1), work: newWork(), connections: newConnections(), asking: make(chan struct{}, 1),
	}
}

// readReady reads the first status of a worker. It returns nil if the worker is ready, and
// otherwise the reason.
func readReady(lines *bufio.Scanner) error {
	if !lines.Scan() {
		return cmp.Or(lines.Err(), errors.New("the process ended before it was ready; its own output is above"))
	}
	var status workerlink.Status
	switch err := json.Unmarshal(lines.Bytes(), &status); {
	case err == nil && status.Error != "":
		return errors.New(status.Error)
	case err != nil || !status.Ready:
		return errors.New("the process sent an unexpected message before it was ready")
	}
	return nil
}

// readStatus handles the statuses of a worker until the worker ends. It kills a worker that
// sends a line that is too long or not a status: a command has taken it over.
func (w *worker) readStatus(lines *bufio.Scanner, r *replay) {
	defer r.end()
	drained := false
	for lines.Scan() {
		var status workerlink.Status
		if json.Unmarshal(lines.Bytes(), &status) != nil {
			_ = w.kill()
			return
		}
		switch {
		case status.Drained && !drained:
			drained = true
			close(w.drained)
		case status.Load != nil:
			select {
			case w.loads <- *status.Load:
			default: // the pool has not asked
			}
		case status.Observed != nil:
			w.work.observe(status.Observed)
			r.observe(status.Observed)
		}
	}
	if lines.Err() != nil {
		_ = w.kill()
	}
}

// launch starts the process, and returns the pool's ends of the control pipe and of the
// status pipe. It serves the store, unless that is nil, until the process has ended.
func (w *worker) launch(p *Pool, name string, paths *userPaths, kept store.Store) (control, status *os.File, err error) {
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
	files := []*os.File{controlReader, statusWriter, listener} // in the order of ControlFD, StatusFD and ListenerFD
	var served []func()
	for _, serve := range p.served(name, kept) {
		conn, end, err := socketPair()
		if err != nil {
			return nil, nil, errors.Join(err, control.Close(), status.Close())
		}
		defer end.Close()
		defer func() {
			if !started {
				conn.Close()
			}
		}()
		files = append(files, end)
		served = append(served, func() {
			if err := serve(conn); err != nil { // a command has taken the worker over
				p.log.Warn("a worker sends nonsense and is killed", "principal", name, "error", err)
				_ = w.kill()
			}
		})
	}
	cmd := &exec.Cmd{Path: paths.program, Args: []string{workerlink.Name}, Env: environ(os.Environ(), paths.homes[name]), Dir: paths.folders[name][0], Stderr: p.o.Stderr, ExtraFiles: files}
	group, err := p.cgroups.enter(cmd, name)
	if err == nil {
		err = paths.enclosure(name).Start(cmd)
		group.close()
	}
	if err != nil {
		return nil, nil, errors.Join(err, group.end(), control.Close(), status.Close())
	}
	started = true
	if p.o.Fenced { // before anybody waits for the process
		if w.fence, w.fenced, err = p.addToFence(name, cmd.Process.Pid); err != nil {
			return nil, nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait(), group.end(), control.Close(), status.Close())
		}
	}
	w.control, w.process, w.kill, w.connections.dial = control, cmd.Process.Pid, cmd.Process.Kill, socket.dial
	for _, serve := range served {
		p.running.Go(serve)
	}
	p.running.Go(func() {
		defer close(w.exited)
		err := cmd.Wait()
		socket.close()
		w.connections.end()
		if w.fence != nil {
			_ = w.fence.extend(w.fenced, 0) // else the fence keeps a descriptor of the process
		}
		p.log.Info("worker ended", "principal", name, "status", fmt.Sprint(err))
		if group.exceeded() {
			p.log.Warn("worker killed by its limit worker.memory", "principal", name)
		}
		if err := group.end(); err != nil { // the next worker tries again
			p.log.Error("the cgroup of a worker is left", "principal", name, "error", err)
		}
	})
	return control, status, nil
}

// environ returns the environment of a worker. It removes the variables that name temporary
// files and services of the user that runs the server, and the secrets for the collector and
// for NATS.
func environ(all []string, home string) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"CODEX_HOME", "DBUS_SESSION_BUS_ADDRESS", "NOTIFY_SOCKET", "SSH_AUTH_SOCK", "TMPDIR", "WATCHDOG_PID", "WATCHDOG_USEC", "XDG_RUNTIME_DIR"}, name) || strings.HasPrefix(name, "NATS_") || strings.HasPrefix(name, "NKEYS_") || slices.Contains(telemetry.SecretVariables, name)
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
	_ = w.send(workerlink.DrainMessage, time.Now().Add(controlTimeout)) // fails if the worker has ended
}

// send sends a message over the control pipe. It fails if the worker has ended, or has not
// read earlier messages until the deadline.
func (w *worker) send(message string, deadline time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pipe, ok := w.control.(*os.File); ok {
		if err := pipe.SetWriteDeadline(deadline); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w.control, message+"\n")
	return err
}

// load asks the worker for its load. It fails if the worker does not answer in time.
func (w *worker) load(ctx context.Context) (l workerlink.Load, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	select {
	case w.asking <- struct{}{}:
		defer func() { <-w.asking }()
	case <-ctx.Done():
		return l, false
	}
	select {
	case <-w.loads: // a late answer to an earlier question
	default:
	}
	deadline, _ := ctx.Deadline()
	if w.send(workerlink.LoadMessage, deadline) != nil {
		return l, false
	}
	select {
	case l = <-w.loads:
		return l, true
	case <-w.exited:
	case <-ctx.Done():
	}
	return l, false
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
