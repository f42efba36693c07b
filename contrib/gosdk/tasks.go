package gosdk

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options describe [Tasks]. The zero value of each field is its default.
type Options struct {
	// Store keeps tasks beyond the process. Default: none.
	Store Store
	// Keep is how long a task is kept after its end. Default: 1 hour.
	Keep time.Duration
	// Poll is how often clients are asked to poll. Default: 1 second.
	Poll time.Duration
	// MaxOpen is how many tasks may be unfinished; one more is refused. Default: 64.
	MaxOpen int
	// MaxKept is how many ended tasks are kept in memory; the oldest goes first. Default: 1024.
	MaxKept int
	// Logger gets the errors of the store. Default: none.
	Logger *slog.Logger
}

// Tasks are the tasks of a server. Several servers may share them, such as one for each HTTP
// session. They are safe for concurrent use.
type Tasks struct {
	o       Options
	ctx     context.Context
	end     context.CancelCauseFunc
	running sync.WaitGroup
	// known has the tasks of this process while no goroutine uses them.
	known chan *table
}

// table has the tasks of a process.
type table struct {
	byID   map[string]*Task
	open   int
	ended  []string // ids, the oldest first
	closed bool
}

// errClosed is why the work of tasks ends with [Tasks.Close].
var errClosed = errors.New("the server has ended before the task")

// New returns tasks without any. Nil is the zero value of the options.
func New(o *Options) *Tasks {
	t := &Tasks{known: make(chan *table, 1)}
	if o != nil {
		t.o = *o
	}
	t.o.Keep, t.o.Poll = cmp.Or(t.o.Keep, time.Hour), cmp.Or(t.o.Poll, time.Second)
	t.o.MaxOpen, t.o.MaxKept = cmp.Or(t.o.MaxOpen, 64), cmp.Or(t.o.MaxKept, 1024)
	if t.o.Logger == nil {
		t.o.Logger = slog.New(slog.DiscardHandler)
	}
	t.ctx, t.end = context.WithCancelCause(context.Background())
	t.known <- &table{byID: map[string]*Task{}}
	return t
}

// use lets one function at a time use the table, and all state of the tasks.
func (t *Tasks) use(do func(*table)) {
	table := <-t.known
	defer func() { t.known <- table }()
	do(table)
}

// Close ends the work of all tasks and waits for its end. They fail. Further calls of
// [Tasks.Start] fail.
func (t *Tasks) Close() {
	t.use(func(all *table) { all.closed = true })
	t.end(errClosed)
	t.running.Wait()
}

// Install adds the extension to a server. It must be called before the server connects.
func (t *Tasks) Install(s *mcp.Server) error {
	err := errors.Join(
		mcp.AddReceivingCustomMethod(s, methodGet, t.get),
		mcp.AddReceivingCustomMethod(s, methodUpdate, t.update),
		mcp.AddReceivingCustomMethod(s, methodCancel, t.cancel),
	)
	if err == nil {
		s.AddReceivingMiddleware(t.middleware)
	}
	return err
}

// made is what a tool has begun in a call, if it has.
type made struct {
	task  *Task
	reply *mcp.CallToolResult // that stands for the task
	first createResult        // how the call is answered
}

type madeKey struct{}

// userKey is the key of the user of a request for a custom method.
type userKey struct{}

// middleware declares the extension, and answers calls with the tasks that they have begun.
func (t *Tasks) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case methodDiscover:
			r, err := next(ctx, method, req)
			if d, ok := r.(*mcp.DiscoverResult); ok && err == nil && d.Capabilities != nil {
				own := *d.Capabilities
				own.Extensions = maps.Clone(own.Extensions)
				own.AddExtension(Extension, map[string]any{})
				d.Capabilities = &own
			}
			return r, err
		case methodCall:
			m := &made{}
			r, err := next(context.WithValue(ctx, madeKey{}, m), method, req)
			if m.task == nil {
				return r, err
			}
			if reply, ok := r.(*mcp.CallToolResult); err != nil || !ok || reply != m.reply {
				m.task.stop(errors.New("no client knows the task"))
				return r, err
			}
			return &m.first, nil
		case methodGet, methodUpdate, methodCancel:
			if err := checkName(req); err != nil {
				return nil, err
			}
			return next(context.WithValue(ctx, userKey{}, userOf(req)), method, req)
		}
		return next(ctx, method, req)
	}
}

// userOf returns the user of a request's bearer token, or "".
func userOf(req mcp.Request) string {
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		return extra.TokenInfo.UserID
	}
	return ""
}

// checkName refuses a request whose header Mcp-Name is another task.
func checkName(req mcp.Request) error {
	p, ok := req.GetParams().(*taskParams)
	if !ok || p == nil {
		return invalid("params: missing")
	}
	extra := req.GetExtra()
	if extra == nil {
		return nil
	}
	if given := extra.Header.Values("Mcp-Name"); len(given) > 0 && !slices.Equal(given, []string{p.TaskID}) {
		return &jsonrpc.Error{Code: mcp.CodeHeaderMismatch,
			Message: "the header Mcp-Name is not the taskId of the params"}
	}
	return nil
}

// Work is what a task does. ctx ends when the task is cancelled or the server ends. An error that
// is a [*jsonrpc.Error] fails the task; any other one completes it with a result that is an error,
// which models can read.
type Work func(ctx context.Context, t *Task) (*mcp.CallToolResult, error)

// Start begins a task for a call. The tool must return its result: it stands for the task. The
// error is a [*jsonrpc.Error] if the client does not declare the extension, see [Declares], or if
// too many tasks are open. [Work] outlives the call.
func (t *Tasks) Start(ctx context.Context, req *mcp.CallToolRequest, do Work) (*mcp.CallToolResult, error) {
	m, ok := ctx.Value(madeKey{}).(*made)
	switch {
	case !ok:
		return nil, errors.New("gosdk: Start needs the context of a call of a server with Tasks.Install")
	case m.task != nil:
		return nil, errors.New("gosdk: a call is one task")
	case !Declares(req):
		return nil, lacking()
	}
	now := stamp()
	k := &Task{all: t, user: userOf(req), client: capabilitiesOf(req.Params.Meta), is: about{
		ID: rand.Text(), Status: modern.TaskStatusWorking, CreatedAt: now, LastUpdatedAt: now,
		PollIntervalMs: t.o.Poll.Milliseconds(),
	}, created: time.Now(), open: map[string]*question{}}
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	k.stop = stop
	refused := ""
	t.use(func(all *table) {
		switch {
		case all.closed:
			refused = errClosed.Error()
		case all.open >= t.o.MaxOpen:
			refused = fmt.Sprintf("%d tasks are unfinished", all.open)
		default:
			all.open++
			all.byID[k.is.ID] = k
			t.running.Add(1)
		}
	})
	if refused != "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "no task was started: " + refused}
	}
	if err := t.put(ctx, k.record()); err != nil {
		t.use(func(all *table) {
			all.open--
			delete(all.byID, k.is.ID)
		})
		t.running.Done()
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "no task was started: it cannot be stored"}
	}
	m.task, m.reply, m.first = k, &mcp.CallToolResult{Content: []mcp.Content{}},
		createResult{ResultType: "task", about: k.is}
	unhook := context.AfterFunc(t.ctx, func() { stop(context.Cause(t.ctx)) })
	go func() {
		defer t.running.Done()
		defer unhook()
		r, err := do(work, k)
		t.finish(k, r, err, context.Cause(work))
	}()
	return m.reply, nil
}

// finish ends a task. cause is why its work had to end, or nil.
func (t *Tasks) finish(k *Task, r *mcp.CallToolResult, err, cause error) {
	k.stop(nil)
	status, how := outcome(r, err, cause)
	ttl := (time.Since(k.created) + t.o.Keep).Milliseconds()
	var rec record
	t.use(func(all *table) {
		k.is.Status, k.is.LastUpdatedAt, k.is.TTLMs, k.end = status, stamp(), &ttl, &how
		clear(k.open)
		rec = k.record()
		all.open--
		all.ended = append(all.ended, k.is.ID)
		if len(all.ended) > t.o.MaxKept {
			delete(all.byID, all.ended[0])
			all.ended = all.ended[1:]
		}
	})
	stored := t.put(context.Background(), rec) == nil && t.o.Store != nil
	if stored {
		t.forget(k.is.ID)
	}
	id := k.is.ID // the timer must not keep a task that is no longer known
	time.AfterFunc(t.o.Keep, func() {
		t.forget(id)
		if stored && t.ctx.Err() == nil {
			t.remove(id)
		}
	})
}

// forget removes an ended task from memory.
func (t *Tasks) forget(id string) {
	t.use(func(all *table) {
		delete(all.byID, id)
		all.ended = slices.DeleteFunc(all.ended, func(ended string) bool { return ended == id })
	})
}

// outcome returns how a task ends.
func outcome(r *mcp.CallToolResult, err, cause error) (Status, end) {
	var coded *jsonrpc.Error
	switch {
	case errors.Is(cause, errClosed):
		return modern.TaskStatusFailed, end{Error: &failure{Code: jsonrpc.CodeInternalError,
			Message: errClosed.Error()}}
	case cause != nil:
		return modern.TaskStatusCancelled, end{}
	case errors.As(err, &coded):
		return modern.TaskStatusFailed, end{Error: &failure{coded.Code, coded.Message, coded.Data}}
	case err != nil:
		r = &mcp.CallToolResult{}
		r.SetError(err)
	case r == nil:
		r = &mcp.CallToolResult{}
	}
	if r.Content == nil {
		whole := *r
		whole.Content = []mcp.Content{}
		r = &whole
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return modern.TaskStatusFailed, end{Error: &failure{Code: jsonrpc.CodeInternalError,
			Message: "the result of the tool cannot be encoded"}}
	}
	// The SDK does not let others set the type of a result, which clients require.
	return modern.TaskStatusCompleted, end{Result: append([]byte(`{"resultType":"complete",`), raw[1:]...)}
}
