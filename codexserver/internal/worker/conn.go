package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Name is os.Args[0] of codex-mcp when it runs as a worker. Flags and arguments cannot
// select it.
const Name = "codex-mcp-worker"

// Version is the version of this protocol. The gateway and its workers must have the same.
const Version = 6

// The descriptors that a worker inherits: its connection to the gateway, and the socket that accepts the
// requests of the user.
const (
	ConnFD = iota + 3
	ListenerFD
)

// The gateway sets these headers to the principal of a request and its scopes.
const (
	PrincipalHeader = "Codex-Mcp-Principal"
	ScopesHeader    = "Codex-Mcp-Scopes"
)

// The methods that the gateway calls. The answer to methodStart comes when the worker accepts requests. methodStop is a
// notification.
const (
	methodStart = "start"
	methodLoad  = "load"
	methodStop  = "stop"
)

// The methods that the worker calls: those of [Store], and the log.
const (
	methodAppend = "append"
	methodPut    = "put"
	methodDelete = "delete"
	methodRead   = "read"
	methodList   = "list"
	methodRecord = "record"
)

// entry are the params of a call of a store.
type entry struct {
	Name string `json:"name,omitzero"`
	At   int64  `json:"at,omitzero"`
	Most int    `json:"most,omitzero"`
	Data []byte `json:"data,omitzero"`
}

// bytesOf are params or a result that are nothing but bytes.
type bytesOf struct {
	Data []byte `json:"data,omitzero"`
}

// nothing are params and a result without members.
type nothing struct{}

const (
	// maxMessage bounds a message, in bytes. A line of the log may have a long patch.
	maxMessage = 100 << 20
	// maxCalls is how many calls of a worker the gateway runs at a time.
	maxCalls = 16
	// maxUnread is how much the gateway keeps for a worker that does not read, in bytes.
	maxUnread = 4 << 20
	// maxError bounds the words of an error, in bytes.
	maxError = 4096
)

// errorCodes returns the errors of a store. The code of an answer is errorCode less the index. Other errors are
// ErrUnavailable.
func errorCodes() []error {
	return []error{ErrUnavailable, ErrFull, ErrFenced, ErrNotFound, ErrOrder, ErrName}
}

const errorCode jsonrpc.Code = -32040

// coded returns an error of a store for the worker.
func coded(err error) error {
	if err == nil {
		return nil
	}
	code := errorCode
	for i, known := range errorCodes() {
		if errors.Is(err, known) {
			code = errorCode - jsonrpc.Code(i)
		}
	}
	return jsonrpc.Errorf(code, "%s", oneLine(err.Error(), maxError))
}

// oneLine returns the beginning of a text, of at most limit bytes, as one line of UTF-8.
func oneLine(text string, limit int) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), limit)], "?")), " ")
}

// Served is what a gateway does for a worker. Its functions get nothing that they can trust.
type Served struct {
	// Store is that of the user. It gets only valid names and sizes.
	Store Store
	// Record appends a line, without its end, to the approval log. Nil means that there is none.
	Record func(line []byte) error
	// Nonsense learns of what no worker sends: a command has taken the worker over.
	Nonsense func(error)
}

// Conn is the gateway's end of the connection to a worker. It is safe for concurrent use.
type Conn struct {
	peer  *jsonrpc.Peer
	ended chan struct{} // closed when no call runs any more
}

// NewConn returns the connection over conn, and serves it until it ends. The caller must close it.
func NewConn(conn net.Conn, s Served) *Conn {
	m := new(jsonrpc.Mux)
	write := func(method string, most int, do func(context.Context, entry) error) {
		jsonrpc.Handle(m, method, func(ctx context.Context, e entry) (nothing, error) {
			err := CheckWrite(e.Name, e.Data, most)
			if err == nil {
				err = do(ctx, e)
			}
			return nothing{}, coded(err)
		})
	}
	write(methodAppend, MaxData, func(ctx context.Context, e entry) error {
		return s.Store.Append(ctx, e.Name, e.At, e.Data)
	})
	write(methodPut, MaxValue, func(ctx context.Context, e entry) error { return s.Store.Put(ctx, e.Name, e.Data) })
	write(methodDelete, 0, func(ctx context.Context, e entry) error { return s.Store.Delete(ctx, e.Name) })
	jsonrpc.Handle(m, methodRead, func(ctx context.Context, e entry) (bytesOf, error) {
		if err := CheckName(e.Name); err != nil {
			return bytesOf{}, coded(err)
		}
		data, err := s.Store.Read(ctx, e.Name, max(e.At, 0), min(max(e.Most, 0), MaxData))
		return bytesOf{data}, coded(err)
	})
	jsonrpc.Handle(m, methodList, func(ctx context.Context, e entry) ([]Info, error) {
		if err := CheckName(e.Name); err != nil && e.Name != "" {
			return nil, coded(err)
		}
		list, err := s.Store.List(ctx, e.Name)
		return list, coded(err)
	})
	if s.Record != nil {
		jsonrpc.Handle(m, methodRecord, func(_ context.Context, b bytesOf) (nothing, error) {
			return nothing{},
				s.Record(b.Data)
		})
	}
	c := &Conn{ended: make(chan struct{})}
	var ended atomic.Bool // nothing more comes from the worker
	c.peer = jsonrpc.NewPeer(jsonrpc.Lines(conn, conn, conn), m, &jsonrpc.Options{
		MaxMessage: maxMessage, MaxConcurrent: maxCalls, MaxUnsent: maxUnread,
		Hooks: &jsonrpc.Hooks{Problem: func(err error, _ []byte) {
			// an answer to a call whose context has ended; what is left at the end
			if !errors.Is(err, jsonrpc.ErrNoCall) && !ended.Load() {
				s.Nonsense(err)
			}
		}, InputEnd: func(error) { ended.Store(true) }},
	})
	go func() {
		defer close(c.ended)
		_ = c.peer.Run(context.Background()) // the worker has ended, or Close was called
	}()
	return c
}

// Start sends the settings to the worker, and returns when it accepts requests, or why it does not.
func (c *Conn) Start(ctx context.Context, s Settings) error {
	err := c.peer.Call(ctx, methodStart, s, nil)
	if answer := new(jsonrpc.Error); errors.As(err, &answer) {
		return errors.New(oneLine(answer.Message, maxError))
	}
	if errors.Is(err, jsonrpc.ErrClosed) {
		return errors.New("the process ended before it was ready; its own output is above")
	}
	return err
}

// Load asks the worker for its load.
func (c *Conn) Load(ctx context.Context) (l Load, err error) {
	err = c.peer.Call(ctx, methodLoad, nothing{}, &l)
	return l, err
}

// Ended is closed when the connection has ended, and no call of the worker runs any more.
func (c *Conn) Ended() <-chan struct{} { return c.ended }

// Stop tells the worker to end. It does not wait for that.
func (c *Conn) Stop() { _ = c.peer.Notify(context.Background(), methodStop, nothing{}) } // fails if it has ended

// Close ends the connection, and waits for the calls of the worker that run.
func (c *Conn) Close() {
	_ = c.peer.Close()
	<-c.ended
}

// Remote is the store of a gateway, as its worker calls it. It is safe for concurrent use.
type Remote struct {
	peer  *jsonrpc.Peer
	gone  chan struct{} // closed when the connection has ended, before a call returns that
	close func()        // closes gone
}

func newRemote() *Remote {
	gone := make(chan struct{})
	return &Remote{gone: gone, close: sync.OnceFunc(func() { close(gone) })}
}

var _ Store = (*Remote)(nil)

// Ended returns a channel that is closed when the connection to the gateway has ended.
func (r *Remote) Ended() <-chan struct{} { return r.gone }

// call calls a method of the store.
func (r *Remote) call(ctx context.Context, method string, e entry, result any) error {
	err := r.peer.Call(ctx, method, e, result)
	if err == nil {
		return nil
	}
	kind := ErrUnavailable
	answer := new(jsonrpc.Error)
	if errors.As(err, &answer) {
		if i := int(errorCode - answer.Code); i >= 0 && i < len(errorCodes()) {
			kind = errorCodes()[i]
		}
		return fmt.Errorf("%w: the node says: %s", kind, oneLine(answer.Message, maxError))
	}
	if errors.Is(err, jsonrpc.ErrClosed) {
		r.close()
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// Append implements [Store].
func (r *Remote) Append(ctx context.Context, name string, at int64, data []byte) error {
	return r.call(ctx, methodAppend, entry{Name: name, At: at, Data: data}, nil)
}

// Put implements [Store].
func (r *Remote) Put(ctx context.Context, name string, data []byte) error {
	return r.call(ctx, methodPut, entry{Name: name, Data: data}, nil)
}

// Delete implements [Store].
func (r *Remote) Delete(ctx context.Context, name string) error {
	return r.call(ctx, methodDelete, entry{Name: name}, nil)
}

// Read implements [Store].
func (r *Remote) Read(ctx context.Context, name string, at int64, most int) ([]byte, error) {
	var got bytesOf
	err := r.call(ctx, methodRead, entry{Name: name, At: at, Most: most}, &got)
	return got.Data, err
}

// List implements [Store].
func (r *Remote) List(ctx context.Context, after string) (list []Info, err error) {
	if err := r.call(ctx, methodList, entry{Name: after}, &list); err != nil {
		return nil, err
	}
	for _, i := range list {
		if err := CheckName(i.Name); err != nil || i.Size < 0 {
			return nil, fmt.Errorf("%w: the list has %.100q", ErrUnavailable, i.Name)
		}
	}
	return list, nil
}
