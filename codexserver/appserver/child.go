package appserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/internal/threadfile"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Time limits. A turn has none.
const (
	handshakeLimit = 30 * time.Second
	controlLimit   = 30 * time.Second
	// startLimit is longer: a thread waits for the MCP servers of its configuration.
	startLimit = 120 * time.Second
	// aliveLimit bounds the wait for any answer at all.
	aliveLimit = 5 * time.Second
)

// child is one run of the app-server and the connection to it. It serves all threads.
type child struct {
	log     *slog.Logger
	app     *appclient.Client
	path    string   // of the program
	pid     int      // of its process; 0 in tests
	environ []string // of its process
	version version
	home    string                  // its CODEX_HOME
	policy  protocol.ApprovalPolicy // the default one of conversations

	// The rollout of a thread has the policies of its turns only when one has begun, and Codex starts and resumes a
	// thread read-only here: see settings.params. A server that ends before leaves a thread that says nothing of what
	// its call chose. So the choice is kept apart, before the client learns of the thread.
	choices *threadfile.Store

	run    sync.WaitGroup // see work
	gone   chan struct{}  // closed when why and ended are set, which then stay
	why    error          // the first reason why the connection ended
	ended  time.Time
	stderr *tail // what the app-server wrote

	limits atomic.Pointer[apptypes.RateLimits] // of the account, as last reported
	checks sync.Map                            // the output of those that run, a *run.Capture, by id

	mu      sync.Mutex
	closing bool                // close waits
	threads map[string]*thread  // that the app-server has in memory, by id
	servers map[string]*servers // by the ids of threads, also of those that are not known yet
	trials  map[protocol.SandboxMode]*trial
	secrets text.Secrets // see learn
}

// connect returns the child of a running app-server, whose process is at the other end of the transport, after the
// handshake. It owns the transport from then on, and closes it when it fails.
func connect(ctx context.Context, t jsonrpc.Transport, stderr *tail, o *Options) (*child, error) {
	c := &child{
		log: o.Logger, gone: make(chan struct{}), stderr: stderr,
		threads: map[string]*thread{}, servers: map[string]*servers{}, trials: map[protocol.SandboxMode]*trial{},
	}
	c.app = appclient.New(t, c.clientOptions(o))
	c.run.Go(func() { c.lost(c.app.Err()) })
	err := c.within(ctx, handshakeLimit, apptypes.CallInitialize, c.app.Initialize)
	said := c.app.Server()
	if c.home, c.version = said.Home, said.Version; err == nil && c.home == "" {
		err = errors.New("codex app-server does not say which CODEX_HOME it has")
	}
	if err != nil {
		c.close()
		return nil, err
	}
	c.choices = threadfile.New(c.home, o.Store)
	return c, nil
}

// clientName is the client's name in Codex's records and in its requests to providers.
const clientName = "codex_mcp"

// call calls a method within a limit, see within. The error is errLate if the app-server does not answer in time.
func (c *child) call(ctx context.Context, limit time.Duration, method string, params, result any) error {
	return c.within(ctx, limit, method,
		func(ctx context.Context) error { return c.app.Call(ctx, method, params, result) })
}

// within waits for what call waits for within a limit. It kills an app-server that answers neither this request nor
// any other, so that the next call starts a new one. One that still answers others, or had no more than steerLimit, keeps running.
func (c *child) within(
	ctx context.Context, limit time.Duration, method string, call func(context.Context) error,
) error {
	timed, stop := context.WithTimeoutCause(ctx, limit, late(method, limit))
	defer stop()
	err := call(timed)
	if err != nil && timed.Err() != nil {
		err = context.Cause(timed) // that of ctx, if that has ended
	}
	if errors.Is(err, errLate) && limit > steerLimit && !c.answers() {
		c.kill(err)
	}
	return c.explain(ctx, err)
}

// control calls a method that is answered soon.
func (c *child) control(ctx context.Context, method string, params, result any) error {
	return c.call(ctx, controlLimit, method, params, result)
}

// answers reports whether the app-server answers requests. It sends one for an unknown
// method; an error is an answer too.
func (c *child) answers() bool {
	ctx, stop := context.WithTimeout(context.Background(), aliveLimit)
	defer stop()
	err := c.app.Call(ctx, "codexmcp/none", struct{}{}, nil)
	return err == nil || errors.As(err, new(*jsonrpc.Error))
}

var errLate = errors.New("did not answer")

func late(method string, limit time.Duration) error {
	return fmt.Errorf("codex app-server %w %s within %s", errLate, method, limit)
}

// kill ends a child that does not answer.
func (c *child) kill(why error) {
	c.lost(why)
	c.app.Abort() // the transport kills the process
}

// lost records the first reason why the connection ended, and ends the turns.
func (c *child) lost(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !closed(c.gone) {
		c.why, c.ended = err, time.Now()
		close(c.gone)
	}
}

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// turns returns the running turns.
func (c *child) turns() (running []*turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.threads {
		if t.turn != nil {
			running = append(running, t.turn)
		}
	}
	return running
}

// close shuts the child down, by force if that takes too long. It returns when the process
// is gone.
func (c *child) close() {
	c.lost(errClosed)
	_ = c.app.Close() // lost has the reason of the end
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.run.Wait()
}

// work runs f in a goroutine for which close waits. When close waits already, the process is gone and f soon ends, so that
// it runs before work returns.
func (c *child) work(f func()) {
	c.mu.Lock()
	closing := c.closing
	if !closing {
		c.run.Go(f)
	}
	c.mu.Unlock()
	if closing {
		f()
	}
}

var errClosed = errors.New("the engine is closed")

// clientOptions say how the questions and notifications of the app-server are handled.
func (c *child) clientOptions(o *Options) *appclient.Options {
	return &appclient.Options{
		Info: apptypes.ClientInfo{Name: clientName, Title: "codexmcp", Version: o.Version},
		// The first is for thread/backgroundTerminals/clean, the second for commands about which
		// only a person may decide: the host counts no other approval of them.
		Capabilities: apptypes.Capabilities{ExperimentalAPI: true, RequiredHumanApproval: true},
		Answers: appclient.Answers{
			Command: answer(c, apptypes.AskItemCommandExecutionRequestApproval,
				func(p *apptypes.CommandApproval) about {
					// text, or null
					return about{p.ThreadID, p.TurnID, p.ItemID, strings.TrimPrefix(string(p.ApprovalID), "null")}
				}, (*question).command),
			Patch: answer(c, apptypes.AskItemFileChangeRequestApproval,
				func(p *apptypes.FileApproval) about { return about{p.ThreadID, p.TurnID, p.ItemID, ""} },
				(*question).fileChange),
			Permissions: answer(c, apptypes.AskItemPermissionsRequestApproval,
				func(p *apptypes.Permissions) about { return about{p.ThreadID, p.TurnID, p.ItemID, ""} },
				(*question).permissions),
			Input: answer(c, apptypes.AskItemToolRequestUserInput,
				func(p *apptypes.UserInput) about { return about{threadID: p.ThreadID, turnID: p.TurnID} },
				(*question).userInput),
			Elicit: answer(c, apptypes.AskMCPServerElicitationRequest,
				func(p *apptypes.Elicitation) about { return about{threadID: p.ThreadID, turnID: p.TurnID} },
				(*question).elicitation),
		},
		Note:    c.notification,
		Foreign: c.foreign,
		Logger:  c.log,
	}
}

// notification handles one notification that is not, or not only, about a turn of a conversation's thread. It
// is called for one at a time.
func (c *child) notification(method string, n *apptypes.Note) {
	switch method {
	case apptypes.NoteWarning, apptypes.NoteConfigWarning, apptypes.NoteDeprecationNotice:
		c.log.Warn("codex: "+c.redact(n.Message+n.Summary), "thread", n.ThreadID, "details", c.redact(n.Details))
		return
	case apptypes.NoteCommandExecOutputDelta:
		if out, is := c.checks.Load(n.ProcessID); is {
			out.(*run.Capture).Add(protocol.OutputStream(n.Stream), n.DeltaBase64)
		}
		return
	case apptypes.NoteMCPServerStartupStatusUpdated:
		c.startup(n)
		if t, r := c.find(n.ThreadID); r != nil && t.agent == "" {
			r.startupNoted()
		}
		return
	case apptypes.NoteAccountRateLimitsUpdated:
		if limitsOf(n.RateLimits) != nil {
			c.limits.Store(n.RateLimits)
			for _, r := range c.turns() {
				r.note(method, n)
			}
		}
		return
	}
	t, r := c.find(n.ThreadID)
	if t == nil {
		return
	}
	t.announced(n)
	if method == apptypes.NoteThreadGoalUpdated && n.Goal != nil && n.Goal.Status == apptypes.ThreadGoalStatusActive {
		t.goalSet()
	}
	// the client passes those of the conversation itself to its turn
	if r != nil && (t.agent != "" || method == apptypes.NoteGuardianWarning) {
		r.note(method, n)
	}
}

// obituary returns how the app-server ended. The caller has seen the connection end or fail; the process ends soon
// after that.
func (c *child) obituary() error {
	<-c.gone
	err := c.why
	switch {
	case errors.Is(err, errClosed):
		return errClosed
	case errors.Is(err, errLate):
		return fmt.Errorf("%w and was ended", err)
	}
	text := "codex app-server has ended"
	if exit, is := errors.AsType[*run.ExitError](err); is {
		text += " (" + exit.Error() + ")"
	}
	if said := c.stderr.last(c.ended); said != "" {
		text += ": " + c.redact(said)
	}
	return told(text)
}

// leaveGrace is how long the process may take to end by itself after its input has ended,
// before it is killed. Codex was measured to need 0.2 to 0.4 s.
const leaveGrace = 800 * time.Millisecond

// tail is a writer that keeps what the app-server wrote to its standard error about its end, without
// colours and secrets. It leaves out other lines, which may come from any program that the app-server started.
type tail struct {
	log *slog.Logger

	mu    sync.Mutex
	part  []byte    // the beginning of a line
	words []string  // the last reason why a program ends, and the lines after it
	at    time.Time // when it was written
}

const tailLines, tailWidth = 5, 4 << 10 // of a reason, and of a line

var (
	colours = lazyregexp.Regexp{Text: "\x1b\\[[0-9;?]*[A-Za-z]"}
	secrets = lazyregexp.Regexp{Text: `(?i)\b(?:sk-[a-z0-9_-]{6,}|eyJ[a-z0-9_-]{8,}[a-z0-9_.-]*|(bearer)\s+[^\s"']+)`}
)

// redact replaces what looks like a key or a token.
func redact(s string) string { return secrets.Get().ReplaceAllString(s, "[redacted]") }

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for part := range bytes.Lines(b) {
		t.part = append(t.part, part[:min(len(part), tailWidth-len(t.part))]...)
		if bytes.HasSuffix(part, []byte("\n")) {
			t.line()
		}
	}
	return len(b), nil
}

// line ends a line.
func (t *tail) line() {
	s := strings.TrimSpace(colours.Get().ReplaceAllString(string(t.part), ""))
	t.part = t.part[:0]
	if s == "" {
		return
	}
	s = redact(strings.ToValidUTF8(s, "\uFFFD"))
	t.log.Debug("codex: stderr", "line", s)
	if lastWords.Get().MatchString(s) {
		t.words, t.at = nil, time.Now()
	}
	if !t.at.IsZero() && len(t.words) < tailLines {
		t.words = append(t.words, s)
	}
}

// lastWords matches the first line of the reason why a program ends: an error of main, an
// error of the command line, or a panic.
var lastWords = lazyregexp.Regexp{Text: `^(?:Error|error|fatal):|panicked at `}

// lastMoment is how long before the end the reason may be written. Older lines are about
// something else.
const lastMoment = 5 * time.Second

// last returns what the app-server wrote about its end at that time, or "".
func (t *tail) last(at time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line()
	if at.Sub(t.at) > lastMoment {
		return ""
	}
	return strings.Join(t.words, " ")
}
