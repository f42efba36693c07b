package workerlink

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

	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/go-json-experiment/json"
)

// Link connects a worker with its gateway.
type Link struct {
	// Settings are what the gateway says about the worker.
	Settings Settings
	// Listener accepts the requests of the user.
	Listener net.Listener
	// RecordLog is the approval log and TraceLog the trace. The gateway stamps and writes their
	// lines. A missing one is nil.
	RecordLog, TraceLog io.WriteCloser
	// Store is the store of the home, or nil. The caller closes it.
	Store *Remote
	// Drain is closed when the worker must let running work end and accept no new work.
	// Stop is closed when the worker must stop. AskLoad receives when the gateway asks
	// for the load.
	Drain, Stop, AskLoad <-chan struct{}

	mu     sync.Mutex
	status io.Writer
}

// Connect returns the link of this process. It fails if the process is not a worker. The
// caller must prevent commands from inheriting the descriptors.
func Connect() (*Link, error) {
	control := bufio.NewReader(os.NewFile(ControlFD, "control"))
	line, err := control.ReadBytes('\n')
	if err != nil {
		return nil, errors.New("only codex-mcp-gateway can start a worker")
	}
	l := &Link{status: os.NewFile(StatusFD, "status")}
	if err := json.Unmarshal(line, &l.Settings); err != nil {
		return nil, fmt.Errorf("read the worker's settings: %w", err)
	}
	socket := os.NewFile(ListenerFD, "listener")
	if l.Listener, err = net.FileListener(socket); err != nil {
		return nil, err
	}
	next := uintptr(firstFileFD)
	connect := func() (net.Conn, error) {
		end := os.NewFile(next, "connection")
		next++
		conn, err := net.FileConn(end)
		if err = errors.Join(err, end.Close()); err != nil {
			return nil, fmt.Errorf("a connection to the gateway: %w", err)
		}
		return conn, nil
	}
	for _, log := range []struct {
		inherited bool
		to        *io.WriteCloser
	}{{l.Settings.Record, &l.RecordLog}, {l.Settings.Trace, &l.TraceLog}} {
		if log.inherited {
			conn, err := connect()
			if err != nil {
				return nil, err
			}
			*log.to = NewLog(conn)
		}
	}
	if l.Settings.Store {
		conn, err := connect()
		if err != nil {
			return nil, err
		}
		l.Store = NewRemote(conn)
	}
	drain, stop, askLoad := make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	l.Drain, l.Stop, l.AskLoad = drain, stop, askLoad
	go func() { // until the gateway closes the pipe or its process ends
		defer close(stop)
		draining := false
		for {
			message, err := control.ReadString('\n')
			switch {
			case err != nil:
				return
			case message == DrainMessage+"\n" && !draining:
				draining = true
				close(drain)
			case message == LoadMessage+"\n":
				select {
				case askLoad <- struct{}{}:
				default: // the previous question is still waiting
				}
			}
		}
	}()
	return l, socket.Close()
}

// Check fails if the gateway has another version of this protocol.
func (l *Link) Check() error {
	if l.Settings.Version != Version {
		return fmt.Errorf("codex-mcp and codex-mcp-gateway belong to different releases (version %d and %d of their protocol); install both from the same release", Version, l.Settings.Version)
	}
	return nil
}

// Report sends a status to the gateway. It fails only if the gateway has ended.
func (l *Link) Report(s Status) error {
	line, err := json.Marshal(s, json.Deterministic(true))
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.status.Write(append(line, '\n'))
	return err
}

// Authenticate returns the principal that the gateway has set in the request. It fails
// unless that is the user. It is for [mcphttp.Options].Authenticate.
func (l *Link) Authenticate(r *http.Request) (mcphttp.Principal, error) {
	names := r.Header.Values(PrincipalHeader)
	if len(names) != 1 || names[0] != l.Settings.Principal {
		return mcphttp.Principal{}, errors.New("the request does not come from the gateway")
	}
	return mcphttp.Principal{Name: names[0], Scopes: mcphttp.ParseScopes(r.Header.Get(ScopesHeader))}, nil
}

// maxError bounds the reason why a worker cannot start, in bytes.
const maxError = 4096

// ReportError reports to the gateway why the worker cannot start.
func (l *Link) ReportError(err error) error {
	return l.Report(Status{Error: oneLine(err.Error(), maxError)})
}

// oneLine returns the beginning of a text, of at most limit bytes, as one line of UTF-8.
func oneLine(text string, limit int) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), limit)], "?")), " ")
}
