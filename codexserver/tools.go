package codexserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

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
		"content": {"type": "string", "description": "The text content, its blocks apart by an empty line."}
	},
	"required": ["threadId", "content"]
}`

const toolAnnotations = `{"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}`

func (ss *session) listTools(context.Context, *mcptypes.ListToolsRequestParams) (*mcptypes.ListToolsResult, error) {
	tools := []string{codexTool, replyTool}
	if ss.server.options.SessionTools {
		tools = append(tools, sessionTools(ss.server.engine)...)
	}
	r := &mcptypes.ListToolsResult{}
	if err := mcptypes.Decode([]byte(`{"tools": [`+strings.Join(tools, ",")+`]}`), r); err != nil {
		return nil, err
	}
	if err := lockArguments(&r.Tools[0], ss.server.options.LockedArguments); err != nil {
		return nil, err
	}
	for i := range r.Tools {
		if !ss.speaks("2025-06-18") {
			r.Tools[i].Title, r.Tools[i].OutputSchema = nil, nil
		}
		if !ss.speaks("2025-03-26") {
			r.Tools[i].Annotations = nil
		}
	}
	return r, nil
}

func (ss *session) callTool(ctx context.Context, r *jsonrpc.Request) (any, error) {
	var p mcptypes.CallToolRequestParams
	if err := r.Bind(&p); err != nil {
		return nil, err
	}
	if introduces(p.Meta) {
		ss.inputEnd.begin()
	}
	c := &call{session: ss, request: r.ID, progress: ss.newProgress(ctx, p.Meta)}
	defer c.progress.end()
	switch p.Name {
	case "codex":
		return ss.callCodex(ctx, c, p.Arguments), nil
	case "codex-reply":
		return ss.callReply(ctx, c, p.Arguments), nil
	}
	if ss.server.options.SessionTools {
		switch p.Name {
		case "codex-list":
			return ss.callList(ctx, p.Arguments), nil
		case "codex-interrupt":
			return ss.callInterrupt(ctx, p.Arguments), nil
		}
	}
	return ss.toolError("", fmt.Sprintf("unknown tool %q", p.Name)), nil
}

// toolResult returns the texts as blocks, and all of them as structured content,
// which is the only thing that some clients hand to their model. Structured
// content came with MCP 2025-06-18; it is sent under earlier versions too, as
// Codex did, whose clients find the thread's id there.
func (ss *session) toolResult(thread string, texts ...string) *mcptypes.CallToolResult {
	return &mcptypes.CallToolResult{
		Content:           mcptypes.Text(texts...),
		StructuredContent: fmt.Appendf(nil, `{"threadId":%s,"content":%s}`, quote(thread), quote(strings.Join(texts, "\n\n"))),
	}
}

// toolError is the result of a call that failed before it had a turn.
func (ss *session) toolError(thread, text string) *mcptypes.CallToolResult {
	r := ss.toolResult(thread, text)
	r.IsError = new(true)
	return r
}

// quote writes a string; bytes that are not UTF-8 become U+FFFD.
func quote(s string) json.RawMessage {
	b, _ := jsontext.AppendQuote(nil, s) // the error is about those bytes
	return json.RawMessage(b)
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
