package workers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
)

const (
	// startTimeout limits the time from the start of a worker until it is ready.
	startTimeout = 30 * time.Second
	// endTimeout limits the time that a worker has to end its work.
	endTimeout = 20 * time.Second
	// loadTimeout limits the time that a worker has to report its load.
	loadTimeout = 5 * time.Second
	// maxKept limits the connections to a worker that no request uses, and keepTime is how long they last.
	maxKept  = 16
	keepTime = 10 * time.Second
	// maxAnswerHeader limits the headers of an answer, in bytes.
	maxAnswerHeader = 1 << 20
)

// process is the pool's handle of a worker's process.
type process struct {
	proxy     *httputil.ReverseProxy
	transport *http.Transport // of proxy
	conn      *worker.Conn
	kill      func() error
	pid       int
	life      *enclosure.Life // nil only in tests
	exited    chan struct{}   // closed when the process has ended
	began     begun           // what it was started with
}

// newWorker returns a worker without a process, whose requests go to what dial returns.
func (p *Pool) newWorker(dial func(context.Context) (net.Conn, error)) *process {
	w := &process{exited: make(chan struct{})}
	w.transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dial(ctx)
			if err != nil {
				return nil, dialError{err}
			}
			return conn, nil
		},
		DisableCompression: true, MaxIdleConnsPerHost: maxKept, IdleConnTimeout: keepTime,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
	w.proxy = newProxy(p.log, challenger{p.o.Challenge, p.o.Settings.Metadata}, w.transport, &p.copies)
	return w
}

// startProcess starts the worker of a user and waits until it is ready. It kills the worker if
// ctx ends before.
func (p *Pool) startProcess(ctx context.Context, name string) (*process, error) {
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
	began := begun{settings: settings, hidden: paths.enclosure(name).Hidden}
	settings.Record = p.record != nil
	if settings.Files, err = worker.Hand(paths.server); err != nil {
		return nil, err
	}
	kept, err := p.keeps(ctx, name)
	if err != nil {
		return nil, err
	}
	w, err := p.launch(name, paths, kept)
	if err != nil {
		return nil, err
	}
	w.began = began
	defer context.AfterFunc(ctx, func() { _ = w.kill() })()
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err = w.conn.Start(starting, settings)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		w.end(0)
		return nil, err
	}
	return w, nil
}

// settingsOf returns those settings of a user's worker that the configuration of the users sets.
func (p *Pool) settingsOf(name string, http *settings.HTTP, paths *userPaths) worker.Settings {
	s, user := p.o.Settings, http.Principals[name]
	s.Version, s.Principal, s.Home, s.Folders = worker.Version, name, paths.homes[name], paths.folders[name]
	s.Turns, s.Tasks = user.Limits.Turns, user.Limits.Tasks
	s.Locked = http.Locked(s.Locked)
	return s
}

// launch starts the process, and serves its connection until it has ended.
func (p *Pool) launch(name string, paths *userPaths, kept worker.Store) (_ *process, err error) {
	l, socket, err := listenWorker(paths.server)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	defer func() {
		if err != nil {
			socket.close()
		}
	}()
	listener, err := l.File()
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	conn, end, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer end.Close()
	cmd := &exec.Cmd{
		Path: paths.program, Args: []string{worker.Name}, Env: environ(os.Environ(), paths.homes[name]),
		Dir: paths.folders[name][0], Stderr: p.o.Stderr,
		ExtraFiles: []*os.File{end, listener}, // in the order of ConnFD and ListenerFD
	}
	in := paths.enclosure(name)
	if in.Life, err = enclosure.NewLife(p.deadline(name)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if err := in.Start(cmd); err != nil {
		return nil, errors.Join(err, conn.Close(), in.Life.Close())
	}
	w := p.newWorker(socket.dial)
	w.pid, w.kill, w.life = cmd.Process.Pid, cmd.Process.Kill, in.Life
	w.conn = worker.NewConn(conn, p.served(name, kept, func(err error) { // a command has taken the worker over
		p.log.Warn("a worker sends nonsense and is killed", "principal", name, "error", err)
		_ = w.kill()
	}))
	p.running.Go(func() {
		defer close(w.exited)
		err := cmd.Wait()
		socket.close()
		w.transport.CloseIdleConnections()
		_ = w.life.Close()
		w.conn.Close()
		p.log.Info("worker ended", "principal", name, "status", fmt.Sprint(err))
	})
	return w, nil
}

// environ returns the environment of a worker. It removes the variables that name temporary
// files and services of the user that runs the server, and the secrets for NATS.
func environ(all []string, home string) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"CODEX_HOME", "DBUS_SESSION_BUS_ADDRESS", "NOTIFY_SOCKET", "SSH_AUTH_SOCK",
			"TMPDIR", "WATCHDOG_PID", "WATCHDOG_USEC", "XDG_RUNTIME_DIR"}, name) || strings.HasPrefix(name, "NATS_") ||
			strings.HasPrefix(name, "NKEYS_")
	})
	return append(all, "CODEX_HOME="+home)
}

// extend changes the time until which the worker may run, if there is one.
func (w *process) extend(deadline time.Duration) {
	if w != nil && w.life != nil {
		_ = w.life.Extend(deadline) // fails if the worker has ended
	}
}

// alive reports whether the process is still running.
func (w *process) alive() bool {
	select {
	case <-w.exited:
		return false
	default:
		return true
	}
}

// gone waits for the end of a worker to which nobody can connect any more. It is false if the worker does not end.
func (w *process) gone(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	select {
	case <-w.exited:
	case <-ctx.Done():
	}
	return !w.alive()
}

// load asks the worker for its load. It fails if the worker does not answer in time.
func (w *process) load(ctx context.Context) (worker.Load, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	return w.conn.Load(ctx)
}

// end makes the worker stop, kills it after the timeout, and waits for its end.
func (w *process) end(timeout time.Duration) {
	w.conn.Stop()
	select {
	case <-w.exited:
	case <-time.After(timeout):
		_ = w.kill() // this also ends all other processes of the enclosure
		<-w.exited
	}
}
