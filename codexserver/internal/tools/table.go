// Package tools has the tools of the server, one in each file, and the table that finds
// them by name. A tool does not depend on the version of MCP of its caller. A call of it is one
// [Wait] for the end of its turn, or of others.
package tools

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/admit"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
)

// Call is a call of a tool, as a connection passes it.
type Call struct {
	// Threads are the threads that the client holds, Turns its turns.
	Threads *thread.Share
	Turns   *Turns
	// Awaited is who attends the turn that the call waits for, and Background others. Background asks nobody
	// if the client gets its questions in results of calls, so that only a call that waits can ask.
	// Submission is the request's id as text, for the first turn of a thread.
	Awaited, Background thread.Attend
	// Inbox has the questions of the call that its client has. It is nil for a client that is asked by requests.
	Inbox Pending
	// Until, unless nil, ends with the call, or with the cause [ErrLimit] before the client would give it up.
	// The call then ends with what is known, and its turn continues in the background.
	Until context.Context
	// Begun, unless nil, is called when the call has a thread and its turn is about to be queued.
	Begun func(*turn.Turn)
	// Durable is true if another process may continue the turn when this one is killed.
	Durable bool
	// Kept, unless nil, is called when a turn begins in the background or goes there, before the call is answered.
	Kept func(*turn.Turn)
	// Known, unless nil, is closed when the turns of servers that were killed are known.
	Known <-chan struct{}
	// Client is the name that the client has in its clientInfo, or "", for those who keep the call.
	Client string
	// Roots are those of the client.
	Roots Roots

	table *Table
	leave func()   // reports to the limit that the turn does not begin; nil for tools without one
	asked func()   // ends that the client is asked the questions of the turn before, if it is
	named string   // the id of the thread that the call is about, for its failure
	begun *begun   // its turn; nil before it is about to be queued, and for tools without one
	read  []*begun // the turns whose results the call returns
}

// Roots returns the folders that a client works in, for which it may be asked. Nil means that it has none.
type Roots = func(context.Context) []string

// reads records that the call returns the result of a turn.
func (c *Call) reads(turns ...*begun) {
	c.Turns.mu.Lock()
	defer c.Turns.mu.Unlock()
	c.read = append(c.read, turns...)
}

// Answered records that the client has the results that the call returns.
func (c *Call) Answered() {
	c.Turns.mu.Lock()
	defer c.Turns.mu.Unlock()
	for _, t := range c.read { // all share the mutex
		t.answered = true
	}
}

// GaveUp records that the client waits for the call no longer, unless it was answered: the results are kept for the next
// call.
func (c *Call) GaveUp() {
	c.Turns.mu.Lock()
	defer c.Turns.mu.Unlock()
	if c.begun != nil {
		c.begun.callerGone = true
	}
}

// Options are the options of the tools. Nil is the zero value.
type Options struct {
	setting.Calls
	// Report says how the tools watch turns. Its Room, which is enough for what a turn writes before its first action, is
	// checked before a turn begins.
	Report changes.Options
	// Store is asked before a turn begins. Nil is not.
	Store safefile.Mirror
	// Folder is the working folder of a thread whose caller does not name one. Default: the client's first root, or
	// else [ProjectFolder].
	Folder string
	// Home is Codex's home. Without it there are no git worktrees and no reviews.
	Home string
	// Continues makes turns of tasks and in the background such that another process can
	// continue them, if the engine can.
	Continues bool
}

// Table has the tools of a server. It is safe for concurrent use.
type Table struct {
	// Rules say what a call may ask for.
	Rules    *admit.Rules
	options  *Options
	engine   engine.Engine
	traits   engine.Traits
	rollouts slots.Slots // one, to read a rollout
	tools    []*tool
	// locked are the arguments that calls of tools that run a turn may not choose: those of the rules, and those
	// that need a tool that is not offered.
	locked []string
	limit  *slots.Limit // turns that run or are queued
	swept  sync.Once    // for what is not needed any more in the home
}

// New returns the tools that e can serve.
func New(e engine.Engine, o *Options) *Table {
	o = cmp.Or(o, &Options{})
	t := &Table{
		options: o, Rules: admit.New(o.Calls, o.Home), engine: e, traits: engine.TraitsOf(e),
		rollouts: make(slots.Slots, 1),
	}
	t.locked = slices.Clone(t.Rules.Locked)
	for _, same := range [][2]string{{"worktree", "attempts"}, {"model", "models"}} {
		if slices.Contains(t.locked, same[0]) {
			t.locked = append(t.locked, same[1])
		}
	}
	if o.Turns > 0 {
		t.limit = slots.NewLimit(o.Turns, "%d turns are under way, and no more may be (limits.turns): "+
			"wait for the end of one, or stop one with codex-interrupt")
	}
	for _, tool := range all {
		chosen := o.Tools == nil || tool == codexTool || tool == replyTool || slices.Contains(o.Tools, tool.name)
		if chosen && (tool.offered == nil || tool.offered(t)) {
			t.tools = append(t.tools, tool)
		}
	}
	if !t.Has(waitTool.name) {
		t.locked = append(t.locked, "background")
	}
	return t
}

// lockedOf returns the arguments that a call of a tool may not choose.
func (t *Table) lockedOf(one *tool) []string {
	if one.turn {
		return t.locked
	}
	return nil
}

// can reports whether the engine of a table has an optional interface.
func can[E any](t *Table) bool {
	_, ok := t.engine.(E)
	return ok
}

// Has reports whether the table has a tool.
func (t *Table) Has(name string) bool { return find(t.tools, name).name != "" }

// List returns the tools as clients see them, in a fixed order. If they mirror arguments, they are asked for
// [era.HeaderThread].
func (t *Table) List(mirror bool) []mcptypes.Tool {
	all := make([]mcptypes.Tool, len(t.tools))
	for i, tool := range t.tools {
		in := tool.schema(slices.Concat(tool.unsaid, t.lockedOf(tool)), mirror)
		all[i] = mcptypes.Tool{
			Name: tool.name, Title: new(t.named(tool.title, t.Title())),
			Description: new(t.named(tool.description, t.Title())), Annotations: tool.hints,
			InputSchema: t.encode(in), Meta: t.meta(tool),
		}
		if tool.result != nil {
			all[i].OutputSchema = t.encode(tool.result())
		}
	}
	return all
}

// Title returns what the server calls itself, on one line.
func (t *Table) Title() string { return plain.OneLine(t.traits.Title, maxName) }

// withoutSandbox has words for an engine that has no sandbox.
var withoutSandbox = strings.NewReplacer(
	", under a sandbox. A person approves what leaves it.",
	". A person approves what it asks about.",
	"asked about a command: untrusted: unless it is known to be safe; on-failure: when the sandbox stopped it; "+
		"on-request: when Codex wants to leave the sandbox; never.",
	"asked about a command.",
	"reasoning, sandbox, approval policy",
	"reasoning, approval policy",
)

// named returns words about Codex as words about the engine.
func (t *Table) named(words, title string) string {
	if !t.traits.Confines {
		words = withoutSandbox.Replace(words)
	}
	return strings.ReplaceAll(words, "Codex", title)
}

// encode returns a schema as JSON, in words about the engine.
func (t *Table) encode(o *schema) []byte {
	title, _ := jsontext.AppendQuote(nil, t.Title())
	return []byte(t.named(string(o.encode()), string(title[1:len(title)-1])))
}

// meta returns the _meta of a tool for Claude Code: how many characters of a result its
// model gets, and whether the tool is always loaded.
func (t *Table) meta(one *tool) map[string]stdjson.RawMessage {
	m := map[string]stdjson.RawMessage{}
	if one.turn || one == waitTool {
		m["anthropic/maxResultSizeChars"] = stdjson.RawMessage("100000")
	}
	if t.options.AlwaysLoad {
		m["anthropic/alwaysLoad"] = stdjson.RawMessage("true")
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// Instructions returns a description of the tools for models. It has less than 2,000
// characters, which all clients show completely.
func (t *Table) Instructions() string {
	who := "an agent"
	if name := t.Title(); name != "Codex" {
		who = name + ", an agent"
	}
	lines := []string{"These tools give coding tasks to " + who +
		" that works in a folder on this machine, under a sandbox. A person approves what leaves it."}
	for _, tool := range t.tools {
		lines = append(lines, "- "+tool.name+": "+tool.purpose)
	}
	lines = append(
		lines,
		"Continue a conversation by the threadId of its result; it remembers what was said and done before.",
		"A result that says that something was declined or denied means that it was not done. "+
			"Do not try it in another way; ask the user.",
	)
	return t.named(strings.Join(lines, "\n"), t.Title())
}

// Call calls a tool. It returns an error result for wrong arguments, an unknown tool and a
// turn that fails.
func (t *Table) Call(ctx context.Context, c *Call, name string, arguments stdjson.RawMessage) *mcptypes.CallToolResult {
	if r := t.begin(ctx, c, name, arguments); r != nil {
		return r
	}
	return c.Result(ctx)
}

// begin is Call without the wait for a turn that the call began. It then returns nil.
func (t *Table) begin(
	ctx context.Context, c *Call, name string, arguments stdjson.RawMessage,
) *mcptypes.CallToolResult {
	tool := find(t.tools, name)
	if tool.name == "" {
		return failure("", fmt.Sprintf("unknown tool %q", name))
	}
	a, err := tool.read(arguments, t.lockedOf(tool))
	c.table = t
	if err == nil && tool.turn {
		if err = c.enter(ctx); err == nil {
			defer func() { c.leave() }() // unless the turn has it
		}
	}
	var r *mcptypes.CallToolResult
	if err == nil {
		r, err = a.run(ctx, c)
	}
	switch {
	case err == nil:
		return r
	case errors.Is(context.Cause(ctx), jsonrpc.ErrClosed): // that is the reason
		return failure(c.named, "Turn aborted: "+turn.ClientGone)
	}
	return failure(c.named, name+": "+err.Error())
}

// enter is [slots.Limit.Enter] for the turn that the call is to begin. It also fails if nothing can be written.
func (c *Call) enter(ctx context.Context) (err error) {
	o := c.table.options
	if err := o.Report.Room.Check(); err != nil {
		return fmt.Errorf("%s cannot be written to, so nothing was started: %w", o.Home, err)
	}
	if err := safefile.MirrorOf(o.Store).Ready(ctx); err != nil {
		return err
	}
	c.table.sweep(c.Turns)
	c.leave, err = c.table.limit.Enter("")
	return err
}

// sweep removes from the home, once and in the background, with the turns of a client, what is not needed any more:
// private git folders of processes that were killed. It finishes their commits, and removes worktrees that
// they had not made whole.
func (t *Table) sweep(ts *Turns) {
	scratch, log := t.options.Report.Scratch, t.options.Report.Logger
	if scratch.Dir == "" {
		return
	}
	t.swept.Do(func() {
		ts.running.Go(func() {
			err := scratch.Sweep(ts.ctx)
			if t.options.Home != "" {
				trees := git.Worktrees(t.options.Home)
				err = errors.Join(err, scratch.Unmake(ts.ctx, trees), scratch.Mend(ts.ctx, trees, t.withheld))
			}
			if err != nil && ts.ctx.Err() == nil && log != nil {
				log.Warn("sweeping what is kept", "error", err)
			}
		})
	})
}
