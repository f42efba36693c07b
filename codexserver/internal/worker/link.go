package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Link is the worker's end of the connection to its gateway.
type Link struct {
	// Settings are what the gateway says about the worker.
	Settings Settings
	// Listener accepts the requests of the user.
	Listener net.Listener
	// Record is the approval log, or nil without one. The gateway stamps and writes its lines.
	Record io.WriteCloser
	// Store is the store of the home.
	Store *Remote
	// Stop is closed when the gateway tells the worker to stop.
	Stop <-chan struct{}

	peer     *jsonrpc.Peer
	load     func() Load // set before the answer to methodStart
	answered sync.Once
	ready    chan error // the answer to methodStart
}

// Connect returns the link of this process. It fails if the process is not a worker. The
// caller must prevent commands from inheriting the descriptors.
func Connect() (*Link, error) {
	end := os.NewFile(ConnFD, "gateway")
	conn, err := net.FileConn(end)
	if err = errors.Join(err, end.Close()); err != nil {
		return nil, errors.New("only codex-mcp-gateway can start a worker")
	}
	socket := os.NewFile(ListenerFD, "listener")
	l, err := net.FileListener(socket)
	if err = errors.Join(err, socket.Close()); err != nil {
		return nil, err
	}
	return connect(conn, l)
}

// connect returns a link over conn when the settings have come.
func connect(conn net.Conn, listener net.Listener) (*Link, error) {
	stop, started := make(chan struct{}), make(chan Settings, 1)
	l := &Link{Listener: listener, Stop: stop, ready: make(chan error, 1)}
	m := new(jsonrpc.Mux)
	jsonrpc.Handle(m, methodStart, func(ctx context.Context, s Settings) (nothing, error) {
		started <- s
		select {
		case err := <-l.ready:
			return nothing{}, err
		case <-ctx.Done():
			return nothing{}, ctx.Err()
		}
	})
	jsonrpc.Handle(m, methodLoad, func(context.Context, nothing) (Load, error) { return l.load(), nil })
	end := sync.OnceFunc(func() { close(stop) })
	jsonrpc.HandleNotify(m, methodStop, func(context.Context, nothing) error { end(); return nil })
	l.Store = newRemote()
	l.peer = jsonrpc.NewPeer(jsonrpc.Lines(conn, conn, conn), m, &jsonrpc.Options{
		MaxMessage: maxMessage, Hooks: &jsonrpc.Hooks{InputEnd: func(error) { l.Store.close() }},
	})
	l.Store.peer = l.peer
	ended := make(chan error, 1)
	go func() { ended <- l.peer.Run(context.Background()) }()
	select {
	case l.Settings = <-started:
	case <-ended:
		return nil, errors.New("the gateway has ended")
	}
	if l.Settings.Record {
		l.Record = &approvalLog{l.peer}
	}
	return l, nil
}

// Check fails if the gateway has another version of this protocol.
func (l *Link) Check() error {
	if l.Settings.Version != Version {
		return fmt.Errorf("codex-mcp and codex-mcp-gateway belong to different releases (version %d and %d of their "+
			"protocol); install both from the same release", Version, l.Settings.Version)
	}
	return nil
}

// Ready tells the gateway that the worker accepts requests. load returns its load.
func (l *Link) Ready(load func() Load) {
	l.answered.Do(func() {
		l.load = load
		l.ready <- nil
	})
}

// failTimeout bounds how long a worker that cannot start waits for its end.
const failTimeout = 5 * time.Second

// Fail tells the gateway why the worker cannot start. It returns false if the gateway knows that it has started.
func (l *Link) Fail(err error) (told bool) {
	l.answered.Do(func() {
		l.ready <- jsonrpc.Errorf(errorCode, "%s", oneLine(err.Error(), maxError))
		told = true
		select { // the answer must be on its way before this process ends: the gateway ends it
		case <-l.Stop:
		case <-l.Store.Ended():
		case <-time.After(failTimeout):
		}
	})
	return told
}

// Close ends the connection. Calls that are running fail.
func (l *Link) Close() error { return l.peer.Close() }

// Authenticate returns the principal that the gateway has set in the request. It fails
// unless that is the user. It is for [mcphttp.Options].Authenticate.
func (l *Link) Authenticate(r *http.Request) (mcphttp.Principal, error) {
	names := r.Header.Values(PrincipalHeader)
	if len(names) != 1 || names[0] != l.Settings.Principal {
		return mcphttp.Principal{}, errors.New("the request does not come from the gateway")
	}
	return mcphttp.Principal{Name: names[0], Scopes: mcphttp.ParseScopes(r.Header.Get(ScopesHeader))}, nil
}

// approvalLog is the log of the gateway, to which a worker appends. It is safe for concurrent use.
type approvalLog struct{ peer *jsonrpc.Peer }

// Write implements [io.Writer] for a line with its end. It returns when the gateway has written the
// line.
func (l *approvalLog) Write(line []byte) (int, error) {
	text := line[:max(len(line)-1, 0)]
	if len(text) == 0 || line[len(text)] != '\n' {
		return 0, errors.New("a log takes one whole line at a time")
	}
	err := l.peer.Call(context.Background(), methodRecord, bytesOf{text}, nil)
	if answer := new(jsonrpc.Error); errors.As(err, &answer) {
		return 0, errors.New(answer.Message)
	}
	if err != nil {
		return 0, fmt.Errorf("the gateway has ended: %w", err)
	}
	return len(line), nil
}

// Close does nothing: the connection is that of the link.
func (l *approvalLog) Close() error { return nil }
