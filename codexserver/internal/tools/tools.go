// Package tools has the tools of the server, one in each file, and the table that finds
// them by name. A tool does not depend on the version of MCP of its caller.
package tools

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Call is a call of a tool, as a connection passes it.
type Call struct {
	// Threads are the threads that the client holds, Jobs its turns.
	Threads *thread.Share
	Jobs    *Jobs
	// Awaited is who attends the turn that the call waits for, and Background others. Background asks nobody
	// if the client gets its questions in results of calls, so that only a call that waits can ask.
	// Submission is the request's id as text, for the first turn of a thread.
	Awaited, Background thread.Attend
	// Open reports whether the client has a question of the call, and returns a channel that is closed
	// when that may have changed. It is nil for a client that is asked by requests.
	Open func() (open bool, changed <-chan struct{})
	// Shared reports that several clients share Jobs.
	Shared bool
	// MaxText is the size of the longest text of a result in bytes of JSON. 0 means no
	// limit.
	MaxText int
	// Late, unless nil, ends when the client would give up the call. The call then ends
	// with what is known, and its turn continues in the background.
	Late context.Context
	// Begun, unless nil, is called when the call has a thread and its turn is queued.
	Begun func(*Job)
	// Survival is how turns outlive their server.
	Survival Survival
	// Host is the name that the client has in its clientInfo, or "", for those who keep the call.
	Host string
	// Folder returns the folder to work in if the call does not name one. "" is the
	// server's own. It may ask the client.
	Folder func(context.Context) string
	// Folders returns the folders of the client, in which a call may have commands write unasked. It
	// may ask the client. Nil means that there are none.
	Folders func(context.Context) []string

	read []*Job // the jobs whose results the call returns
}

// Survival is how turns outlive their server.
type Survival struct {
	// Durable is true if another process may continue the turn when this one is killed.
	Durable bool
	// Kept, unless nil, is called when a turn begins in the background or goes there, before
	// the call is answered.
	Kept func(*Job)
	// Took, unless nil, is closed when the turns of servers that were killed are known.
	Took <-chan struct{}
}

// call is a call in a table.
type call struct {
	*Call
	table *Table
	leave func() // reports to [turns] that the turn does not begin, or nil
}

// Options are the options of the tools. Nil is the zero value.
type Options struct {
	setting.Calls
	// Report says how the tools watch turns.
	Report turnlog.Options
	// Store is asked before a turn begins. Nil is not.
	Store *store.Mirror
	// Home is Codex's home. Without it there are no git worktrees and no reviews.
	Home string
	// Room is checked before a turn begins: enough for what a turn writes before its first
	// action. It is given up when a turn fails because the disk is full, to record how it ended.
	Room *safefile.Reserve
	// Continues makes turns of tasks and in the background such that another process can
	// continue them, if the engine can.
	Continues bool
}

// maxResult returns the size of the longest answer in bytes.
func (o *Options) maxResult() int { return cmp.Or(max(o.MaxResult, 0), setting.DefaultResult) }

// bounds returns the folders in which the paths of a call must lie.
func (o *Options) bounds() bounds { return o.Folders }

// Table has the tools of a server. It is safe for concurrent use.
type Table struct {
	options  *Options
	engine   engine.Engine
	rollouts chan struct{} // has an element while a rollout is read
	tools    []tool
	// locked are the arguments that a call of a tool may not choose, by tool: those of the
	// options, and those that need a tool that is not offered.
	locked map[string][]string
	// confined is true when calls may not choose the sandbox or the approval policy.
	confined bool
	turns    turns
	sweeper  sweeper
}

// tool is one tool.
type tool struct {
	name, definition string
	output           string // the outputSchema, unless the definition has it
	call             handler
	input            func() (*input, error)
	alike            []string // see [input.check]
}

func newTool(name, definition string, call handler) tool {
	return tool{name: name, definition: definition, call: call, input: inputOf(definition)}
}

// New returns the tools that e can serve.
func New(e engine.Engine, o *Options) *Table {
	if o == nil {
		o = &Options{}
	}
	t := &Table{options: o, engine: e, rollouts: make(chan struct{}, 1)}
	if o.Turns > 0 {
		t.turns = make(turns, o.Turns)
	}
	codex, reply := newTool("codex", codexTool, with(t.callCodex)), newTool("codex-reply", replyTool, with(t.callReply))
	codex.output, reply.output, reply.alike = turnlog.Schema, turnlog.ShortSchema, turnNames
	t.tools = []tool{codex, reply, newTool("codex-wait", waitTool, with(callWait)), newTool("codex-show", showTool, with(t.callShow))}
	if o.Home != "" {
		t.tools = append(t.tools, newTool("codex-review", reviewTool, with(t.callReview)))
	}
	t.sweeper = sweeper{scratch: o.Report.Scratch, log: o.Report.Logger}
	if library, ok := e.(engine.Library); ok {
		t.tools = append(t.tools, newTool("codex-list", listTool, with(list{library}.call)))
	}
	t.tools = append(t.tools, newTool("codex-interrupt", interruptTool, with(callInterrupt)))
	if lister, ok := e.(engine.ModelLister); ok {
		t.tools = append(t.tools, newTool("codex-models", modelsTool, with(models{lister}.call)))
	}
	if o.Tools != nil {
		t.tools = slices.DeleteFunc(t.tools, func(t tool) bool {
			return t.name != "codex" && t.name != "codex-reply" && !slices.Contains(o.Tools, t.name)
		})
	}
	locked := allLocked(o.LockedArguments)
	t.confined = slices.Contains(locked, "approval-policy") || slices.Contains(locked, "sandbox")
	t.locked = map[string][]string{"codex": slices.Clone(locked), "codex-reply": lockedOf(locked), "codex-review": slices.Clone(locked)}
	if !t.Has("codex-wait") {
		for name, locked := range t.locked {
			t.locked[name] = append(locked, "background")
		}
	}
	return t
}

// Short reports whether calls of a tool never take long.
func Short(name string) bool { return name == "codex-list" || name == "codex-interrupt" }

// List returns the tools as clients see them, in a fixed order.
func (t *Table) List() ([]mcptypes.Tool, error) {
	definitions := make([]string, len(t.tools))
	for i := range t.tools {
		definitions[i] = t.tools[i].definition
	}
	var r mcptypes.ListToolsResult
	if err := r.UnmarshalJSON([]byte(`{"tools": [` + strings.Join(definitions, ",") + `]}`)); err != nil {
		return nil, err
	}
	for i := range r.Tools {
		one := &r.Tools[i]
		one.Meta = t.meta(one.Name)
		if output := t.tools[i].output; output != "" {
			one.OutputSchema = stdjson.RawMessage(output)
		}
		if err := lockArguments(one, t.locked[one.Name]); err != nil {
			return nil, err
		}
	}
	return r.Tools, nil
}

// meta returns the _meta of a tool for Claude Code: how many characters of a result its
// model gets, and whether the tool is always loaded.
func (t *Table) meta(name string) map[string]stdjson.RawMessage {
	m := map[string]stdjson.RawMessage{}
	if name == "codex" || name == "codex-reply" || name == "codex-wait" || name == "codex-review" {
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

// IsTurn reports whether a tool runs a turn, which may take long.
func IsTurn(name string) bool {
	return name == "codex" || name == "codex-reply" || name == "codex-review"
}

// Has reports whether the table has a tool.
func (t *Table) Has(name string) bool {
	return slices.ContainsFunc(t.tools, func(t tool) bool { return t.name == name })
}

// Unknown returns the text of an error about a tool that is not in the table.
func (t *Table) Unknown(name string) string {
	return fmt.Sprintf("unknown tool %q", name)
}

// Call calls a tool. It returns an error result for wrong arguments, an unknown tool and a
// turn that fails.
func (t *Table) Call(ctx context.Context, c *Call, name string, arguments stdjson.RawMessage) *mcptypes.CallToolResult {
	i := slices.IndexFunc(t.tools, func(t tool) bool { return t.name == name })
	if i < 0 {
		return failure("", t.Unknown(name))
	}
	own := &call{Call: c, table: t}
	if IsTurn(name) {
		err := t.checkRoom()
		if err == nil {
			err = t.options.Store.Ready(ctx)
		}
		if err != nil {
			return failure("", name+": "+err.Error())
		}
		t.sweeper.begin(c.Jobs)
		leave, err := t.turns.enter()
		if err != nil {
			return failure("", name+": "+err.Error())
		}
		own.leave = leave
		defer func() {
			if own.leave != nil {
				own.leave()
			}
		}()
	}
	arguments, err := t.check(&t.tools[i], arguments)
	var r *mcptypes.CallToolResult
	if err == nil {
		r, err = t.tools[i].call(ctx, own, arguments)
	}
	if err != nil {
		return failure("", name+": "+err.Error())
	}
	return r
}

// checkRoom fails if the home has no room for a turn.
func (t *Table) checkRoom() error {
	if err := t.options.Room.Check(); err != nil {
		return fmt.Errorf("there is no room to write to %s, so nothing was started: %w", t.options.Home, err)
	}
	return nil
}

// check returns the arguments as the schema wants them, with numbers inside their bounds, or an error that
// names an argument that is locked or does not fit the schema.
func (t *Table) check(one *tool, arguments stdjson.RawMessage) (stdjson.RawMessage, error) {
	in, err := one.input()
	if err != nil {
		return nil, err
	}
	if arguments, err = in.readTexts(arguments); err != nil { // before anything is judged by them
		return nil, err
	}
	given := map[string]any{}
	if err := decodeArguments(arguments, &given); err != nil {
		return nil, err
	}
	if err := unlocked(given, t.locked[one.name]); err != nil {
		return nil, err
	}
	if clamped, err := in.check(given, one.alike); err != nil || !clamped {
		return arguments, err
	}
	return json.Marshal(given)
}

// result returns the texts as blocks, and also as structured content, because some clients
// show only that to their model. Structured content came with MCP 2025-06-18. It is also
// sent under earlier versions, as Codex did: clients find the thread's id there.
func result(thread string, texts ...string) *mcptypes.CallToolResult {
	structured := quote([]byte(`{"threadId":`), thread)
	structured = append(quote(append(structured, `,"content":`...), strings.Join(texts, "\n\n")), '}')
	return &mcptypes.CallToolResult{Content: blocks(texts...), StructuredContent: structured}
}

// quote appends a JSON string. Invalid UTF-8 becomes U+FFFD.
func quote(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error reports invalid UTF-8
	return b
}

// failure returns the result of a call that failed before it had a turn.
func failure(thread, text string) *mcptypes.CallToolResult {
	r := result(thread, text)
	r.IsError = new(true)
	return r
}
