package workers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/go-json-experiment/json"
)

const (
	// startLimit is how long a worker may take until it serves.
	startLimit = 30 * time.Second
	// endLimit is how long it may take to end what it has started.
	endLimit = 20 * time.Second
)

// worker is a worker's process as the pool sees it.
type worker struct {
	proxy   *httputil.ReverseProxy
	socket  string
	process *os.Process
	gone    chan struct{} // closed when the process has ended
	drained chan struct{} // closed when nothing is under way any more

	mu    sync.Mutex
	order *os.File // closed to end it
}

// start starts a worker and waits until it serves.
func (p *Pool) start(name string) (*worker, error) {
	// Where paths lead may have changed since the server's start.
	places, err := findPlaces(p.o.Home, p.secret(), p.o.HTTP.Principals)
	if err != nil {
		return nil, err
	}
	if err := places.clear(name); err != nil {
		return nil, err
	}
	order := p.o.Order
	order.Principal, order.Home, order.Folders = name, places.homes[name], places.work[name]
	order.Approver = p.o.HTTP.Principals[name].Approver
	order.Record, order.Trace = p.o.Record != nil, p.o.Trace != nil
	limits := p.o.HTTP.Principals[name].Limits
	order.Turns, order.Tasks = limits.Turns, limits.Tasks
	order.Locked = p.o.HTTP.Locked(order.Locked, name)
	if order.Files, err = config.Hand(places.server); err != nil {
		return nil, err
	}
	text, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	w := &worker{gone: make(chan struct{}), drained: make(chan struct{})}
	answers, err := w.launch(p, name, places)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(startLimit)
	err = errors.Join(w.order.SetWriteDeadline(deadline), answers.SetReadDeadline(deadline))
	if err == nil {
		_, err = w.order.Write(append(text, '\n'))
	}
	lines := bufio.NewReader(answers)
	if err == nil {
		err = ready(lines)
	}
	if err != nil {
		w.end(0)
		answers.Close()
		return nil, err
	}
	_ = errors.Join(w.order.SetWriteDeadline(time.Time{}), answers.SetReadDeadline(time.Time{})) // pipes have deadlines
	p.running.Go(func() {
		defer answers.Close()
		if line, err := lines.ReadString('\n'); err == nil && line == drainedWord+"\n" {
			close(w.drained)
		}
	})
	return w, nil
}

// ready reads whether a worker serves.
func ready(lines *bufio.Reader) error {
	line, err := lines.ReadString('\n')
	reason, failed := strings.CutPrefix(strings.TrimSpace(line), errorWord)
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("it has ended; its own words are above")
	case err != nil:
		return err
	case failed:
		return errors.New(reason)
	case line != readyWord+"\n":
		return errors.New("it says something else than that it serves")
	}
	return nil
}

// launch starts the process, and returns the pipe of its answers.
func (w *worker) launch(p *Pool, name string, places *places) (answers *os.File, err error) {
	path := filepath.Join(p.sockets, name)
	if err := os.RemoveAll(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	socket, err := l.File()
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	theirs, order, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	answers, say, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, order.Close())
	}
	defer say.Close()
	files := []*os.File{theirs, say, socket} // as orderFD and those after it say
	for _, file := range []*os.File{p.o.Record, p.o.Trace} {
		if file != nil {
			files = append(files, file)
		}
	}
	cmd := &exec.Cmd{Args: []string{Name}, Env: environ(os.Environ(), places.homes[name]), Dir: places.work[name][0], Stderr: p.o.Stderr, ExtraFiles: files}
	if err := places.enclosure(name).Start(cmd); err != nil {
		return nil, errors.Join(err, order.Close(), answers.Close())
	}
	w.order, w.process, w.proxy, w.socket = order, cmd.Process, newProxy(p.log), path
	p.running.Go(func() {
		defer close(w.gone)
		err := cmd.Wait()
		p.log.Info("worker ended", "principal", name, "status", fmt.Sprint(err))
	})
	return answers, nil
}

// environ is a worker's environment: the server's, without what leads to the temporary
// files and the services of its user.
func environ(all []string, home string) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"CODEX_HOME", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "TMPDIR", "XDG_RUNTIME_DIR"}, name)
	})
	return append(all, "CODEX_HOME="+home)
}

// alive reports whether the process has not ended.
func (w *worker) alive() bool {
	select {
	case <-w.gone:
		return false
	default:
		return true
	}
}

// drain lets work under way end. It does not wait.
func (w *worker) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = io.WriteString(w.order, drainWord+"\n") // fails when it has ended
}

// end ends the process, by force after a while.
func (w *worker) end(limit time.Duration) {
	w.mu.Lock()
	w.order.Close()
	w.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.gone:
	case <-timer.C:
		_ = w.process.Kill() // with the first process of an enclosure all others end
		<-w.gone
	}
}
