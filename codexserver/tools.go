package codexserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// outputSchema is what both tools promise for structuredContent.
const outputSchema = `{
	"type": "object",
	"properties": {
		"threadId": {"type": "string", "description": "Id of the conversation, for codex-reply."},
		"content": {"type": "string", "description": "The answer, as in the text content."}
	},
	"required": ["threadId", "content"]
}`

const toolAnnotations = `{"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}`

func (ss *session) listTools(context.Context, *mcptypes.ListToolsRequestParams) (*mcptypes.ListToolsResult, error) {
	list := `{"tools": [` + strings.Join([]string{codexTool, replyTool}, ",") + `]}`
	r := &mcptypes.ListToolsResult{}
	return r, mcptypes.Decode([]byte(list), r)
}

func (ss *session) callTool(ctx context.Context, r *jsonrpc.Request) (any, error) {
	var p mcptypes.CallToolRequestParams
	if err := r.Bind(&p); err != nil {
		return nil, err
	}
	c := &call{request: r.ID}
	switch p.Name {
	case "codex":
		return ss.callCodex(ctx, c, p.Arguments), nil
	case "codex-reply":
		return ss.callReply(ctx, c, p.Arguments), nil
	}
	return toolError("", fmt.Sprintf("unknown tool %q", p.Name)), nil
}

// result is what a turn gives its caller: the answer, and in a second block
// why questions could not be put to the client. A failed or aborted turn is an
// error result with the reason; the thread stays usable.
func (c *call) result(thread string, err error) *mcptypes.CallToolResult {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.answer
	var abort *engine.AbortError
	switch {
	case errors.As(err, &abort):
		text = "Turn aborted: " + abortCause(abort)
	case err != nil:
		text = err.Error()
	}
	r := toolResult(thread, append([]string{text}, c.excuses...)...)
	if err != nil {
		r.IsError = new(true)
	}
	return r
}

func abortCause(e *engine.AbortError) string {
	switch {
	case e.Cause == nil:
		return string(e.Reason)
	case errors.Is(e.Cause, jsonrpc.ErrClosed):
		return "the client closed the connection"
	}
	return e.Cause.Error()
}

// toolResult holds the texts as blocks and the first of them as structured content.
func toolResult(thread string, texts ...string) *mcptypes.CallToolResult {
	return &mcptypes.CallToolResult{
		Content:           mcptypes.Text(texts...),
		StructuredContent: structured(thread, texts[0]),
	}
}

// toolError is the result of a call that failed before it had a turn.
func toolError(thread, text string) *mcptypes.CallToolResult {
	r := toolResult(thread, text)
	r.IsError = new(true)
	return r
}

func structured(thread, content string) json.RawMessage {
	return fmt.Appendf(nil, `{"threadId":%s,"content":%s}`, quote(thread), quote(content))
}

func quote(s string) json.RawMessage {
	b, err := jsontext.AppendQuote(nil, s) // an error means that invalid UTF-8 was replaced
	if err != nil && len(b) == 0 {
		return json.RawMessage(`""`)
	}
	return b
}

// decodeArguments reads a tool's arguments; its error names the member.
func decodeArguments(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		raw = json.RawMessage(`{}`)
	}
	err := jsonv2.Unmarshal(raw, into)
	var wrong *jsonv2.SemanticError
	if !errors.As(err, &wrong) || wrong.GoType == nil {
		return err
	}
	want := wrong.GoType
	if want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	return fmt.Errorf("argument %s: want %s, found %s", wrong.JSONPointer, goKinds[want.Kind()], jsonKinds[wrong.JSONKind])
}

var (
	goKinds = map[reflect.Kind]string{
		reflect.String: "a string", reflect.Bool: "a boolean", reflect.Map: "an object", reflect.Struct: "an object",
	}
	jsonKinds = map[jsontext.Kind]string{
		'n': "null", 't': "a boolean", 'f': "a boolean", '"': "a string", '0': "a number", '{': "an object", '[': "an array",
	}
)

// sendEvent sends one event to the caller of a tool.
func (ss *session) sendEvent(request jsonrpc.ID, e protocol.Event) {
	b := []byte(`{"_meta":{"requestId":`)
	b = request.AppendJSON(b)
	b = append(b, `},"id":`...)
	b = append(b, quote(e.ID)...)
	b = append(b, `,"msg":`...)
	b, err := protocol.AppendEvent(b, e.Msg)
	if err != nil {
		ss.log.Error("event not sent", "error", err)
		return
	}
	ss.notify("codex/event", json.RawMessage(append(b, '}')))
}
