// Package tools has the tools of the server, one in each file, and the table that
// finds them by name. A tool does not know by which version of MCP it was called.
package tools

import (
	"context"
	stdjson "encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/report"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/worktree"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
)

// Call is a call of a tool, as a connection hands it over.
type Call struct {
	// ID is the request's id as text, the id of the events of a first turn.
	ID string
	// Threads are the threads that the client holds, Jobs are its turns.
	Threads *thread.Share
	Jobs    *Jobs
	// Attendance attends a turn that the call waits for, Background one that it
	// does not.
	Attendance, Background thread.Attendance
	// Place is where questions of turns in the background stand while codex-wait
	// waits for them. Nil when the client is asked anyway, or cannot be.
	Place approval.Place
	// Asks is true when the client is asked about turns in the background whether
	// codex-wait waits for them or not.
	Asks bool
	// Hold waits while the client has questions of Place to answer, and reports
	// whether it had to. Nil when there is no Place.
	Hold func(context.Context) bool
	// Relay has questions that the client's principal decides for others, while
	// codex-wait waits; Taker is where they stand. Nil for any other client.
	Relay *approval.Relay
	Taker approval.Place
	// OpenOnly hides threads that are not open, whose rollouts may be of another
	// principal.
	OpenOnly bool
	// Shared says that Jobs are those of several clients.
	Shared bool
	// MaxText bounds the text of a result, in bytes of JSON; 0 means no bound.
	MaxText int
	// Begun is called when the call has a thread and its turn is queued. Nil does
	// nothing.
	Begun func(*Job)

	options *Options // of the table that the call is of
	more    string   // where what a result leaves out can be read
	// Folder returns where to work when the call names no folder, "" for the
	// server's own. It may ask the client.
	Folder func(context.Context) string

	read []*Job // whose results the call returns

	bounds bounds // of the table
	leave  func() // frees the place of a turn that has not begun; nil without one
}

// Options say which tools there are.
type Options struct {
	// Tools are those to offer besides codex and codex-reply. Nil means all.
	Tools []string
	// Report says how the tools watch turns.
	Report report.Options
	// MaxResult bounds the structured content of a result, in bytes. 0 is
	// [report.DefaultLimit].
	MaxResult int
	// Stall is how long a model may be silent before it is called stuck. 0 is
	// [stall.Default], less is for ever.
	Stall time.Duration
	// AlwaysLoad asks clients that load tools on demand to load these at once.
	AlwaysLoad bool
	// LockedArguments are arguments of codex that a call may not choose.
	LockedArguments []string
	// TrustedCalls lets the argument config of codex set every key, unless there are
	// Folders.
	TrustedCalls bool
	// Home is the folder that git worktrees of threads lie in; without it there
	// are none, and no reviews.
	Home string
	// Folders bound what a call may name. Nil means no bound.
	Folders []string
	// Turns is how many turns are under way at a time. 0 means no bound.
	Turns int
}

// Table is the tools of a server. It is safe for concurrent use.
type Table struct {
	options   Options
	engine    engine.Engine
	rollouts  chan struct{} // holds one while a rollout is read
	tools     []tool
	worktrees *worktrees // nil without a folder for them
	// locked are the arguments that a call of a tool may not choose: those of the
	// options, and those whose results another tool has that is not offered.
	locked map[string][]string
	// bounded is true when calls may not choose the sandbox or the approval policy.
	bounded bool
	bounds  bounds
	turns   *turns
	// deciding is true for clients that decide what the turns of others ask, and have
	// no turns of their own.
	deciding bool
}

// tool is one tool: what clients see of it, and what it does.
type tool struct {
	name, definition string
	call             func(ctx context.Context, c *Call, arguments stdjson.RawMessage) *mcptypes.CallToolResult
}

// New returns the tools that e can serve.
func New(e engine.Engine, o Options) *Table {
	t := &Table{options: o, engine: e, rollouts: make(chan struct{}, 1), bounds: o.Folders, turns: &turns{max: o.Turns}}
	t.tools = []tool{
		{"codex", codexTool, t.callCodex},
		{"codex-reply", replyTool, t.callReply},
		{"codex-wait", waitTool, callWait},
		{"codex-show", showTool, t.callShow},
	}
	if o.Home != "" {
		t.worktrees = &worktrees{store: worktree.In(o.Home)}
		t.tools = append(t.tools, tool{"codex-worktree", worktreeTool, t.callWorktree}, tool{"codex-review", reviewTool, t.callReview})
	}
	if library, ok := e.(engine.Library); ok {
		t.tools = append(t.tools, tool{"codex-list", listTool, list{library}.call})
	}
	t.tools = append(t.tools, tool{"codex-interrupt", interruptTool, callInterrupt})
	if lister, ok := e.(engine.ModelLister); ok {
		t.tools = append(t.tools, tool{"codex-models", modelsTool, models{lister}.call})
	}
	if o.Tools != nil {
		t.tools = slices.DeleteFunc(t.tools, func(t tool) bool {
			return t.name != "codex" && t.name != "codex-reply" && !slices.Contains(o.Tools, t.name)
		})
	}
	locked := allLocked(o.LockedArguments)
	t.bounded = slices.Contains(locked, "approval-policy") || slices.Contains(locked, "sandbox")
	t.locked = map[string][]string{"codex": slices.Clone(locked), "codex-reply": lockedOf(locked), "codex-review": slices.Clone(locked)}
	if !t.Has("codex-wait") {
		for name, locked := range t.locked {
			t.locked[name] = append(locked, "background")
		}
	}
	if o.Home != "" && !t.Has("codex-worktree") {
		t.locked["codex"] = append(t.locked["codex"], "worktree", "uncommitted")
	}
	return t
}

// Short reports whether calls of the tool of that name take little time in any case.
func Short(name string) bool { return name == "codex-list" || name == "codex-interrupt" }

// List returns the tools as clients see them, in a fixed order.
func (t *Table) List() ([]mcptypes.Tool, error) {
	definitions := make([]string, len(t.tools))
	for i := range t.tools {
		definitions[i] = t.tools[i].definition
	}
	var r mcptypes.ListToolsResult
	if err := mcptypes.Decode([]byte(`{"tools": [`+strings.Join(definitions, ",")+`]}`), &r); err != nil {
		return nil, err
	}
	for i := range r.Tools {
		one := &r.Tools[i]
		one.Meta = t.meta(one.Name)
		if err := lockArguments(one, t.locked[one.Name]); err != nil {
			return nil, err
		}
	}
	return r.Tools, nil
}

// meta is for clients that look for it: how much of a result goes to the model
// whole, in characters, and that the tool is always in sight (Claude Code).
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

// Has reports whether there is a tool of that name.
func (t *Table) Has(name string) bool {
	return slices.ContainsFunc(t.tools, func(t tool) bool { return t.name == name })
}

// Unknown returns what an error says of a tool that is not in the table.
func (t *Table) Unknown(name string) string {
	if t.deciding {
		return fmt.Sprintf("tool %q is not for approvers, who have codex-wait alone", name)
	}
	return fmt.Sprintf("unknown tool %q", name)
}

// Call calls a tool. A fault in the arguments, an unknown tool and a turn that
// fails are error results.
func (t *Table) Call(ctx context.Context, c *Call, name string, arguments stdjson.RawMessage) *mcptypes.CallToolResult {
	i := slices.IndexFunc(t.tools, func(t tool) bool { return t.name == name })
	if i < 0 {
		return failure("", t.Unknown(name))
	}
	if IsTurn(name) {
		leave, err := t.turns.enter()
		if err != nil {
			return failure("", name+": "+err.Error())
		}
		c.leave = leave
		defer func() {
			if c.leave != nil {
				c.leave()
			}
		}()
	}
	c.options, c.bounds = &t.options, t.bounds
	if t.Has("codex-show") {
		c.more = "codex-show has the rest"
	}
	return t.tools[i].call(ctx, c, arguments)
}

const annotations = `{"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}`

// result returns the texts as blocks, and all of them as structured content,
// which is the only thing that some clients hand to their model. Structured
// content came with MCP 2025-06-18; it is sent under earlier versions too, as Codex
// did, whose clients find the thread's id there.
func result(thread string, texts ...string) *mcptypes.CallToolResult {
	structured := quote([]byte(`{"threadId":`), thread)
	structured = append(quote(append(structured, `,"content":`...), strings.Join(texts, "\n\n")), '}')
	return &mcptypes.CallToolResult{Content: mcptypes.Text(texts...), StructuredContent: structured}
}

// interim is the result of a call whose turn continues.
func interim(thread string, status Status, text string) *mcptypes.CallToolResult {
	r := result(thread, text)
	last := len(r.StructuredContent) - 1
	r.StructuredContent = append(quote(append(r.StructuredContent[:last:last], `,"status":`...), string(status)), '}')
	return r
}

// quote appends a string; bytes that are not UTF-8 become U+FFFD.
func quote(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error is about those bytes
	return b
}

// failure returns the result of a call that failed before it had a turn.
func failure(thread, text string) *mcptypes.CallToolResult {
	r := result(thread, text)
	r.IsError = new(true)
	return r
}
