package appserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/internal/wire"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Time limits. A turn has none.
const (
	handshakeLimit = 30 * time.Second
	controlLimit   = 30 * time.Second
	// startLimit is longer: a thread waits for the MCP servers of its configuration.
	startLimit = 120 * time.Second
	// closeLimit bounds the orderly end of a connection.
	closeLimit = time.Second
	// aliveLimit bounds the wait for any answer at all, and obituaryLimit that for
	// the end of a connection that does not answer any more.
	aliveLimit    = 5 * time.Second
	obituaryLimit = 5 * time.Second
)

// child is one run of the app-server and the connection to it. It serves all threads.
type child struct {
	log      *slog.Logger
	peer     *jsonrpc.Peer
	stderr   *tail
	programs *sandbox.Programs
	path     string // of the program; "" if it was dialled
	pid      int    // 0 if it was dialled
	version  version
	home     string // its CODEX_HOME
	policy   string // the default approval policy of conversations
	shared   bool   // by other programs

	gone chan struct{} // closed when the connection has ended
	run  sync.WaitGroup

	mu       sync.Mutex
	lostErr  error
	lostAt   time.Time
	threads  map[string]*thread  // of conversations
	agents   map[string]subAgent // by the ids of their threads
	unknown  map[string]bool     // methods that were reported as unknown
	limits   *wire.RateLimits    // of the account, as last reported
	logins   map[string]chan protocol.LoginChatGPTComplete
	requests requests // of the app-server
}

// subAgent is a thread that a conversation's thread started by itself.
type subAgent struct {
	root *thread
	path string // such as /root/worker, or the id of its thread
}

// connect returns the child of a running app-server after the handshake. It owns the
// transport from then on, and closes it when it fails.
func connect(ctx context.Context, t jsonrpc.Transport, stderr *tail, programs *sandbox.Programs, o *Options, shared bool) (*child, error) {
	c := &child{
		log: o.logger(), stderr: stderr, programs: programs, shared: shared,
		gone:    make(chan struct{}),
		threads: map[string]*thread{}, agents: map[string]subAgent{}, unknown: map[string]bool{},
		logins:   map[string]chan protocol.LoginChatGPTComplete{},
		requests: requests{open: map[jsonrpc.ID]context.CancelFunc{}, early: map[jsonrpc.ID]bool{}},
	}
	c.peer = jsonrpc.NewPeer(&endWatcher{Transport: t, ended: c.lost}, c.handler(), &jsonrpc.Options{
		OmitVersion: true,
		FirstID:     1,
		MaxMessage:  maxMessage,
	})
	c.run.Go(func() {
		err := c.peer.Run(context.Background())
		if p, ok := t.(*process); ok {
			if end := p.Close(); end != nil {
				err = end // explains more than a failed write
			}
		}
		c.lost(err)
	})
	if err := c.handshake(ctx, o); err != nil {
		err = c.explain(err) // before close records an end of its own
		c.close()
		return nil, err
	}
	return c, nil
}

// maxMessage bounds a line of the app-server. Lists of models and images are long.
const maxMessage = 256 << 20

// endWatcher is a transport that reports the end of its input.
type endWatcher struct {
	jsonrpc.Transport
	ended func(error)
}

func (t *endWatcher) Read(ctx context.Context) ([]byte, error) {
	b, err := t.Transport.Read(ctx)
	var one *jsonrpc.Error
	if err != nil && !errors.As(err, &one) {
		t.ended(err)
	}
	return b, err
}

func (t *endWatcher) SetReadLimit(n int) {
	setReadLimit(t.Transport, n)
}

func (c *child) handshake(ctx context.Context, o *Options) error {
	var r wire.InitializeReply
	err := c.call(ctx, handshakeLimit, wire.CallInitialize, wire.InitializeParams{
		ClientInfo: wire.ClientInfo{Name: clientName, Title: "codexmcp", Version: o.clientVersion()},
		// For thread/backgroundTerminals/clean.
		Capabilities: &wire.Capabilities{ExperimentalAPI: true},
	}, &r)
	if err != nil {
		return err
	}
	c.home = r.CodexHome
	if c.version, err = agentVersion(r.UserAgent); err != nil {
		return err
	}
	if c.version.less(oldest) {
		return tooOld(c.version)
	}
	return c.peer.Notify(ctx, "initialized", nil)
}

// clientName is the client's name in Codex's records and in its requests to providers.
const clientName = "codex_mcp"

// call calls a method within a limit. It returns a *timeoutError when the app-server
// does not answer in time.
func (c *child) call(ctx context.Context, limit time.Duration, method string, params, result any) error {
	timed, stop := context.WithTimeoutCause(ctx, limit, &timeoutError{method, limit})
	defer stop()
	err := c.peer.Call(timed, method, params, result)
	if err != nil && ctx.Err() == nil && timed.Err() != nil {
		return context.Cause(timed)
	}
	if ctx.Err() != nil && err != nil {
		return context.Cause(ctx)
	}
	return err
}

// control calls a method that is answered soon. It kills an app-server that answers
// neither this request nor any other, so that the next call starts a new one. An
// app-server that still answers others keeps running.
func (c *child) control(ctx context.Context, method string, params, result any) error {
	return c.patient(ctx, controlLimit, method, params, result)
}

// patient is control for a method that may take longer.
func (c *child) patient(ctx context.Context, limit time.Duration, method string, params, result any) error {
	err := c.call(ctx, limit, method, params, result)
	var late *timeoutError
	if errors.As(err, &late) && !c.answers() {
		c.kill(err)
	}
	return c.explain(err)
}

// answers reports whether the app-server answers requests. It sends one for an unknown
// method; an error is an answer too.
func (c *child) answers() bool {
	ctx, stop := context.WithTimeout(context.Background(), aliveLimit)
	defer stop()
	err := c.peer.Call(ctx, "codexmcp/none", struct{}{}, nil)
	var refusal *jsonrpc.Error
	return err == nil || errors.As(err, &refusal)
}

type timeoutError struct {
	method string
	after  time.Duration
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("codex app-server did not answer %s within %s", e.method, e.after)
}

// kill ends a child that does not answer.
func (c *child) kill(why error) {
	c.lost(why)
	_ = c.peer.Close() // the transport kills the process
}

// lost records the first reason why the connection ended, and ends the turns.
func (c *child) lost(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.gone:
		return
	default:
	}
	c.lostErr, c.lostAt = err, time.Now()
	close(c.gone)
}

// busy reports whether a turn runs.
func (c *child) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.threads {
		if t.now() != nil {
			return true
		}
	}
	return false
}

// isGone reports whether the connection has ended.
func (c *child) isGone() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// close shuts the child down, by force if that takes too long. It returns when the process
// is gone.
func (c *child) close() {
	c.lost(errClosed)
	ctx, stop := context.WithTimeout(context.Background(), closeLimit)
	defer stop()
	_ = c.peer.Shutdown(ctx) // closes the transport even if ctx ends first
	c.run.Wait()
}

var errClosed = errors.New("the engine is closed")

// handler routes the requests and notifications of the app-server. The peer answers
// an unknown request with -32601.
func (c *child) handler() jsonrpc.Handler {
	m := &jsonrpc.Mux{}
	jsonrpc.Handle(m, wire.AskItemCommandExecutionRequestApproval, c.askCommand)
	jsonrpc.Handle(m, wire.AskItemFileChangeRequestApproval, c.askFileChange)
	jsonrpc.Handle(m, wire.AskItemPermissionsRequestApproval, c.askPermissions)
	jsonrpc.Handle(m, wire.AskItemToolRequestUserInput, c.askUserInput)
	jsonrpc.Handle(m, wire.AskMCPServerElicitationRequest, c.askElicitation)
	return jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		if r.IsNotification() {
			return nil, c.notification(r)
		}
		if !wire.KnownAsk(r.Method) {
			c.warnUnknown("request", r.Method)
		}
		ctx, done := c.handling(ctx, r.ID)
		defer done()
		if c.shared && !slices.Contains(asks, r.Method) {
			c.leaves(ctx) // such as a tool that another program has declared
		}
		return m.ServeRPC(ctx, r)
	})
}

// asks are the methods of [child.handler].
var asks = []string{
	wire.AskItemCommandExecutionRequestApproval, wire.AskItemFileChangeRequestApproval,
	wire.AskItemPermissionsRequestApproval, wire.AskItemToolRequestUserInput, wire.AskMCPServerElicitationRequest,
}

// notification handles one notification. It is called for one at a time.
func (c *child) notification(r *jsonrpc.Request) error {
	if !wire.UsesNote(r.Method) {
		if !wire.KnownNote(r.Method) {
			c.warnUnknown("notification", r.Method)
		}
		return nil
	}
	if r.Method == wire.NoteAccountLoginCompleted {
		c.loginEnded(r.Params)
		return nil
	}
	var n wire.Note
	if err := r.Bind(&n); err != nil {
		c.log.Warn("codex: notification not understood", "method", r.Method, "error", err)
		if r.Method != wire.NoteTurnCompleted {
			return nil
		}
		n = endOnly(r.Params, err) // a turn must not wait for another end
	}
	switch r.Method {
	case wire.NoteWarning, wire.NoteConfigWarning, wire.NoteDeprecationNotice:
		c.log.Warn("codex: "+n.Message+n.Summary, "thread", n.ThreadID, "details", n.Details)
		return nil
	case wire.NoteAccountRateLimitsUpdated:
		for _, t := range c.rateLimited(n.RateLimits) {
			t.notification(r.Method, &n)
		}
		return nil
	case wire.NoteServerRequestResolved:
		c.withdrawn(n.RequestID)
		return nil
	}
	c.mu.Lock()
	t, agent := c.threads[n.ThreadID], c.agents[n.ThreadID]
	c.mu.Unlock()
	switch {
	case t != nil:
		c.adopt(t, r.Method, &n)
		t.notification(r.Method, &n)
	case agent.root != nil:
		c.adopt(agent.root, r.Method, &n)
		agent.root.agentNotification(r.Method, &n)
	}
	return nil
}

// endOnly reads which turn has ended, and nothing else, from an end that is not understood.
func endOnly(params json.RawMessage, why error) wire.Note {
	var end struct {
		ThreadID string `json:"threadId"`
		Turn     struct {
			ID string `json:"id"`
		} `json:"turn"`
	}
	if json.Unmarshal(params, &end) != nil {
		return wire.Note{}
	}
	return wire.Note{ThreadID: end.ThreadID, Turn: &wire.Turn{
		ID: end.Turn.ID, Status: wire.TurnStatusFailed, Error: &wire.TurnError{Message: "codex reported the end of the turn in an unknown form: " + why.Error()},
	}}
}

// maxUnknownMethods bounds the unknown methods that are remembered, and maxMethod how much of one is.
const (
	maxUnknownMethods = 100
	maxMethod         = 100
)

// warnUnknown reports a method that the schema does not have, once.
func (c *child) warnUnknown(kind, method string) {
	method = method[:min(len(method), maxMethod)]
	c.mu.Lock()
	known := c.unknown[method] || len(c.unknown) >= maxUnknownMethods
	if !known {
		c.unknown[method] = true
	}
	c.mu.Unlock()
	if !known {
		c.log.Warn("codex: unknown "+kind+"; this codexmcp is older than Codex", "method", method, "version", c.version.String())
	}
}

// rateLimited records the account's limits and returns the threads to notify.
func (c *child) rateLimited(r *wire.RateLimits) []*thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limits = r
	all := make([]*thread, 0, len(c.threads))
	for _, t := range c.threads {
		all = append(all, t)
	}
	return all
}

// adopt records the threads of sub-agents that the notification announces. With the tools of
// many models, also of the newest Codex, that is the result of the tool that starts them.
func (c *child) adopt(root *thread, method string, n *wire.Note) {
	if method != wire.NoteItemStarted && method != wire.NoteItemCompleted || n.Item == nil {
		return
	}
	var found []string
	path := ""
	switch typeOf(n.Item) {
	case wire.ThreadItemSubAgentActivity:
		if it, err := parseItem(n.Item); err == nil {
			found, path = []string{it.AgentThreadID}, it.AgentPath
		}
	case itemCollab:
		var it collab
		if json.Unmarshal(n.Item, &it) == nil && it.SenderThreadID == n.ThreadID {
			found = it.ReceiverThreadIDs
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range found {
		if id != "" && c.threads[id] == nil && c.agents[id].root == nil {
			c.agents[id] = subAgent{root: root, path: cmp.Or(path, id)}
		}
	}
}

// root returns the thread of the conversation that a thread belongs to. If the thread is a
// sub-agent's, it also returns the sub-agent's path. It returns nil for an unknown thread.
func (c *child) root(threadID string) (*thread, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.threads[threadID]; t != nil {
		return t, ""
	}
	a := c.agents[threadID]
	return a.root, a.path
}

// load registers a thread that this child has loaded, and whose commands have the
// environment environ. The host hears of turns that another program begins.
func (c *child) load(r *threadReply, environ []string, host engine.Host) *thread {
	t := c.loaded(r, environ)
	t.mu.Lock()
	t.host = host
	free := t.running == nil && t.left == nil && t.other == nil
	t.mu.Unlock()
	if c.shared && free && r.Thread.Status.Type == wire.ThreadStatusActive {
		t.hear("")
	}
	return t
}

func (c *child) loaded(r *threadReply, environ []string) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.threads[r.Thread.ID]
	if t == nil {
		t = &thread{id: r.Thread.ID, child: c, turns: make(chan struct{}, 1)}
		c.threads[t.id] = t
		delete(c.agents, t.id)
	}
	t.setRules(r, environ)
	return t
}

// find returns a thread that this child has loaded, or nil.
func (c *child) find(id string) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.threads[id]
}

// forget drops a thread and its sub-agents.
func (c *child) forget(t *thread) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.threads[t.id] == t {
		delete(c.threads, t.id)
	}
	for id, a := range c.agents {
		if a.root == t {
			delete(c.agents, id)
		}
	}
}

// lastLimits returns the account's last known limits, for a turn that begins.
func (c *child) lastLimits(now time.Time) *protocol.RateLimits {
	c.mu.Lock()
	defer c.mu.Unlock()
	return limitsOf(c.limits, now)
}
