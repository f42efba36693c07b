package workers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/streamable"
	"github.com/go-json-experiment/json"
)

// Link connects a worker with its pool.
type Link struct {
	Settings
	// Listener accepts the requests of the user.
	Listener net.Listener
	// RecordFile is the approval log and TraceFile the trace file. A missing one is nil.
	RecordFile, TraceFile *os.File
	// Drain is closed when the worker must let running work end and accept no new work.
	// Stop is closed when the worker must stop. CheckIdle receives when the pool asks
	// whether the worker is idle; answer with [Link.ReportIdle].
	Drain, Stop, CheckIdle <-chan struct{}

	mu     sync.Mutex
	status *os.File
}

// Connect returns the link of this process. It fails if the process is not a worker. The
// caller must prevent commands from inheriting the descriptors.
func Connect() (*Link, error) {
	control := bufio.NewReader(os.NewFile(controlFD, "control"))
	line, err := control.ReadBytes('\n')
	if err != nil {
		return nil, errors.New("only codex-mcp http can start a worker")
	}
	l := &Link{status: os.NewFile(statusFD, "status")}
	if err := json.Unmarshal(line, &l.Settings); err != nil {
		return nil, fmt.Errorf("read the worker's settings: %w", err)
	}
	socket := os.NewFile(listenerFD, "listener")
	if l.Listener, err = net.FileListener(socket); err != nil {
		return nil, err
	}
	next := uintptr(firstFileFD)
	for _, file := range []struct {
		inherited bool
		to        **os.File
	}{{l.Settings.Record, &l.RecordFile}, {l.Settings.Trace, &l.TraceFile}} {
		if file.inherited {
			*file.to = os.NewFile(next, "log")
			next++
		}
	}
	drain, stop, checkIdle := make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	l.Drain, l.Stop, l.CheckIdle = drain, stop, checkIdle
	go func() { // until the pool closes the pipe or its process ends
		defer close(stop)
		draining := false
		for {
			message, err := control.ReadString('\n')
			switch {
			case err != nil:
				return
			case message == drainMessage+"\n" && !draining:
				draining = true
				close(drain)
			case message == checkIdleMessage+"\n":
				select {
				case checkIdle <- struct{}{}:
				default: // the previous question is still waiting
				}
			}
		}
	}()
	return l, socket.Close()
}

// ReportReady reports to the pool that the worker accepts requests.
func (l *Link) ReportReady() error { return l.send(readyMessage) }

// ReportDrained reports to the pool that no work is running any more.
func (l *Link) ReportDrained() error { return l.send(drainedMessage) }

// ReportIdle reports to the pool whether the worker is idle. The pool ends an idle worker
// and sends it no more requests.
func (l *Link) ReportIdle(idle bool) error {
	if idle {
		return l.send(idleMessage)
	}
	return l.send(busyMessage)
}

// ReportError reports to the pool why the worker cannot start.
func (l *Link) ReportError(err error) error {
	return l.send(errorPrefix + strings.Join(strings.Fields(err.Error()), " "))
}

func (l *Link) send(line string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.WriteString(l.status, line+"\n")
	return err
}

// Authenticate returns the principal that the pool has set in the request. It fails unless
// that is the user or its approver. It is for [streamable.Options].Authenticate.
func (l *Link) Authenticate(r *http.Request) (streamable.Principal, error) {
	names := r.Header.Values(principalHeader)
	if len(names) != 1 || names[0] != l.Principal && (names[0] != l.Approver || l.Approver == "") {
		return streamable.Principal{}, errors.New("the request does not come from the server")
	}
	return streamable.Principal{Name: names[0], Scopes: streamable.ParseScopes(r.Header.Get(scopesHeader))}, nil
}
