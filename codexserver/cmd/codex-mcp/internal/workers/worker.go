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
	// startLimit is how long a worker may take until it serves.
	startLimit = 30 * time.Second
	// endLimit is how long it may take to end what it has started.
	endLimit = 20 * time.Second
	// restLimit is how long it may take to say whether it is idle.
	restLimit = 5 * time.Second
)

// worker is a worker's process as the pool sees it.
type worker struct {
	proxy   *httputil.ReverseProxy
	dial    func(context.Context) (net.Conn, error)
	kill    func() error
	process int
	gone    chan struct{} // closed when the process has ended
	drained chan struct{} // closed when nothing is under way any more
	rests   chan bool     // its answers to whether it is idle

	mu    sync.Mutex
	order io.WriteCloser // closed to end it
}

// start starts a worker and waits until it serves.
func (p *Pool) start(name string) (*worker, error) {
	// Where paths lead may have changed since the server's start.
	places, err := findPlaces(p.o.Home, p.o.Hidden, p.o.HTTP.Principals)
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
	w := newWorker(p.log, challenger{p.o.Challenge, p.o.Order.Metadata})
	orders, answers, err := w.launch(p, name, places)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(startLimit)
	err = errors.Join(orders.SetWriteDeadline(deadline), answers.SetReadDeadline(deadline))
	if err == nil {
		_, err = orders.Write(append(text, '\n'))
	}
	lines := bufio.NewScanner(answers) // with bounded lines
	if err == nil {
		err = ready(lines)
	}
	if err != nil {
		w.end(0)
		answers.Close()
		return nil, err
	}
	_ = errors.Join(orders.SetWriteDeadline(time.Time{}), answers.SetReadDeadline(time.Time{})) // pipes have deadlines
	p.running.Go(func() {
		defer answers.Close()
		w.listen(lines)
	})
	return w, nil
}

// newWorker returns a worker without a process.
func newWorker(log *slog.Logger, c challenger) *worker {
	return &worker{proxy: newProxy(log, c), gone: make(chan struct{}), drained: make(chan struct{}), rests: make(chan bool, 1)}
}

// ready reads whether a worker serves.
func ready(lines *bufio.Scanner) error {
	more := lines.Scan()
	reason, failed := strings.CutPrefix(lines.Text(), errorWord)
	switch {
	case lines.Err() != nil:
		return lines.Err()
	case !more:
		return errors.New("it has ended; its own words are above")
	case failed:
		return errors.New(reason)
	case lines.Text() != readyWord:
		return errors.New("it says something else than that it serves")
	}
	return nil
}

// listen takes what a worker says, until it ends or says what no line may be.
func (w *worker) listen(lines *bufio.Scanner) {
	drained := false
	for lines.Scan() {
		switch word := lines.Text(); word {
		case drainedWord:
			if !drained {
				close(w.drained)
			}
			drained = true
		case idleWord, busyWord:
			select {
			case w.rests <- word == idleWord:
			default: // nothing has asked
			}
		}
	}
}

// launch starts the process, and returns the pipes of its order and of its answers.
func (w *worker) launch(p *Pool, name string, places *places) (order, answers *os.File, err error) {
	l, door, err := openDoor(places.server)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	started := false
	defer func() {
		if !started {
			door.close()
		}
	}()
	socket, err := l.File()
	if err != nil {
		return nil, nil, err
	}
	defer socket.Close()
	theirs, order, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	answers, say, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, order.Close())
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
		return nil, nil, errors.Join(err, order.Close(), answers.Close())
	}
	started = true
	w.order, w.process, w.kill, w.dial = order, cmd.Process.Pid, cmd.Process.Kill, door.dial
	p.running.Go(func() {
		defer close(w.gone)
		err := cmd.Wait()
		door.close()
		p.log.Info("worker ended", "principal", name, "status", fmt.Sprint(err))
	})
	return order, answers, nil
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

// idle asks the worker whether nothing is under way in it. One that does not answer in
// time is busy.
func (w *worker) idle() bool {
	select {
	case <-w.rests: // an answer that came too late
	default:
	}
	w.mu.Lock()
	_, err := io.WriteString(w.order, restWord+"\n")
	w.mu.Unlock()
	if err != nil {
		return false // it has ended
	}
	timer := time.NewTimer(restLimit)
	defer timer.Stop()
	select {
	case idle := <-w.rests:
		return idle
	case <-w.gone:
	case <-timer.C:
	}
	return false
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
		_ = w.kill() // with the first process of an enclosure all others end
		<-w.gone
	}
}
