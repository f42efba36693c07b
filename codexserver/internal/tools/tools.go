// Package tools has the tools of the server, one in each file, and the table that
// finds them by name. A tool does not know by which version of MCP it was called.
package tools

import (
	"context"
	stdjson "encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
)

// Call is a call of a tool, as a connection hands it over.
type Call struct {
	// ID is the request's id as text, the id of the events of a first turn.
	ID string
	// Threads are the threads that the connection holds.
	Threads *thread.Share
	// Attendance attends what the call starts.
	Attendance thread.Attendance
	// Folder returns where to work when the call names no folder, "" for the
	// server's own. It may ask the client.
	Folder func(context.Context) string
}

// Options say which tools there are.
type Options struct {
	// SessionTools offers codex-list and codex-interrupt.
	SessionTools bool
	// LockedArguments are arguments of codex that a call may not choose.
	LockedArguments []string
	// TrustedCalls lets the argument config of codex set every key.
	TrustedCalls bool
}

// Table is the tools of a server. It is safe for concurrent use.
type Table struct {
	options Options
	tools   []tool
}

// tool is one tool: what clients see of it, and what it does.
type tool struct {
	name, definition string
	call             func(ctx context.Context, c *Call, arguments stdjson.RawMessage) *mcptypes.CallToolResult
}

// New returns the tools that e can serve.
func New(e engine.Engine, o Options) *Table {
	t := &Table{options: o}
	t.tools = []tool{
		{"codex", codexTool, t.callCodex},
		{"codex-reply", replyTool, callReply},
	}
	if !o.SessionTools {
		return t
	}
	if library, ok := e.(engine.Library); ok {
		t.tools = append(t.tools, tool{"codex-list", listTool, list{library}.call})
	}
	t.tools = append(t.tools, tool{"codex-interrupt", interruptTool, callInterrupt})
	return t
}

// Short reports whether calls of the tool of that name take little time,
// whatever else goes on.
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
	return r.Tools, lockArguments(&r.Tools[0], t.options.LockedArguments)
}

// Call calls a tool. A fault in the arguments, an unknown tool and a turn that
// fails are error results.
func (t *Table) Call(ctx context.Context, c *Call, name string, arguments stdjson.RawMessage) *mcptypes.CallToolResult {
	i := slices.IndexFunc(t.tools, func(t tool) bool { return t.name == name })
	if i < 0 {
		return failure("", fmt.Sprintf("unknown tool %q", name))
	}
	return t.tools[i].call(ctx, c, arguments)
}

// outputSchema is what both tools promise for structuredContent.
const outputSchema = `{
	"type": "object",
	"properties": {
		"threadId": {"type": "string", "description": "Id of the conversation, for codex-reply."},
		"content": {"type": "string", "description": "The text content, its blocks apart by an empty line."}
	},
	"required": ["threadId", "content"]
}`

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
