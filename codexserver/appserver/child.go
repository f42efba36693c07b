package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/internal/wire"
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
	programs *sandbox.Programs
	process  *process // nil if it was dialled
	version  version
	home     string // its CODEX_HOME
	policy   string // the default approval policy of conversations
	shared   bool   // by other programs

	run sync.WaitGroup

	mu       sync.Mutex
	end      ending
	threads  threads
	unknown  map[string]bool  // methods that were reported as unknown
	limits   *wire.RateLimits // of the account, as last reported
	logins   map[string]chan protocol.LoginChatGPTComplete
	requests requests // of the app-server
}

// connect returns the child of a running app-server after the handshake. It owns the
// transport from then on, and closes it when it fails.
func connect(ctx context.Context, t jsonrpc.Transport, stderr *tail, programs *sandbox.Programs, o *Options, shared bool) (*child, error) {
	c := &child{
		log: o.logger(), programs: programs, shared: shared, end: ending{gone: make(chan struct{}), stderr: stderr},
		threads: threads{loaded: map[string]*thread{}, agents: map[string]subAgent{}}, unknown: map[string]bool{},
		logins:   map[string]chan protocol.LoginChatGPTComplete{},
		requests: requests{open: map[jsonrpc.ID]context.CancelFunc{}, early: map[jsonrpc.ID]bool{}},
	}
	c.peer = jsonrpc.NewPeer(&endWatcher{Transport: t, ended: c.lost}, c.handler(), &jsonrpc.Options{
		OmitVersion: true,
		FirstID:     1,
		MaxMessage:  maxMessage,
	})
	c.process, _ = t.(*process)
	c.run.Go(func() {
		err := c.peer.Run(context.Background())
		if c.process != nil {
			if end := c.process.Close(); end != nil {
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
		// The first is for thread/backgroundTerminals/clean, the second for commands about which
		// only a person may decide: the host counts no other approval of them.
		Capabilities: &wire.Capabilities{ExperimentalAPI: true, RequiredHumanApproval: true},
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
	c.end.record(err)
}

// busy reports whether a turn runs.
func (c *child) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.threads.loaded {
		if t.now() != nil {
			return true
		}
	}
	return false
}

// isGone reports whether the connection has ended.
func (c *child) isGone() bool { return c.end.over() }

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
	handle(m, c, wire.AskItemCommandExecutionRequestApproval, wire.CommandDecision{Decision: word(decline)},
		func(p *wire.CommandApproval) about { return about{p.ThreadID, p.TurnID, p.ItemID} }, (*question).command)
	handle(m, c, wire.AskItemFileChangeRequestApproval, wire.FileDecision{Decision: decline},
		func(p *wire.FileApproval) about { return about{p.ThreadID, p.TurnID, p.ItemID} }, (*question).fileChange)
	handle(m, c, wire.AskItemPermissionsRequestApproval, noPermissions,
		func(p *wire.Permissions) about { return about{p.ThreadID, p.TurnID, p.ItemID} }, (*question).permissions)
	handle(m, c, wire.AskItemToolRequestUserInput, noInput(),
		func(p *userInput) about { return about{threadID: p.ThreadID, turnID: p.TurnID} }, (*question).userInput)
	handle(m, c, wire.AskMCPServerElicitationRequest, withContent(declinedElicitation),
		func(p *elicitation) about { return about{threadID: p.ThreadID, turnID: p.TurnID} }, (*question).elicitation)
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
	t, agent := c.root(n.ThreadID)
	if t == nil {
		return nil
	}
	c.adopt(t, r.Method, &n)
	if agent == "" {
		t.notification(r.Method, &n)
	} else {
		t.agentNotification(r.Method, &n)
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
	return slices.Collect(maps.Values(c.threads.loaded))
}

// lastLimits returns the account's last known limits, for a turn that begins.
func (c *child) lastLimits(now time.Time) *protocol.RateLimits {
	c.mu.Lock()
	defer c.mu.Unlock()
	return limitsOf(c.limits, now)
}
