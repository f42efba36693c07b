package legacy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// The smallest picture and the smallest sound.
const (
	png = mcptypes.Base64("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	wav = mcptypes.Base64("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=")
)

var image = &mcptypes.ImageContent{Data: png, MimeType: "image/png"}

func text(s string) mcptypes.ContentBlock { return &mcptypes.TextContent{Text: s} }

func embedded(uri, mime, content string) mcptypes.ContentBlock {
	return &mcptypes.EmbeddedResource{Resource: &mcptypes.TextResourceContents{URI: uri, MimeType: &mime,
		Text: content}}
}

// SchemaTool is the tool whose [Schema] must reach the client as it is, in every version.
const SchemaTool = "json_schema_2020_12_tool"

// Schema uses what JSON Schema 2020-12 has.
const Schema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
	"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
	"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},
		"phone":{"type":"string"},"email":{"type":"string"}},
	"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
	"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},
	"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`

// fixed are the tools that always say the same.
var fixed = map[string][]mcptypes.ContentBlock{
	"test_simple_text":       {text("a text")},
	"test_image_content":     {image},
	"test_audio_content":     {&mcptypes.AudioContent{Data: wav, MimeType: "audio/wav"}},
	"test_embedded_resource": {embedded("test://embedded-resource", "text/plain", "an embedded text")},
	"test_multiple_content_types": {text("several"), image,
		embedded("test://mixed", "application/json", `{"test":"data"}`)},
	SchemaTool: {text("its input schema is what matters")},
}

// forms are the tools that show a form.
var forms = map[string]json.RawMessage{
	"test_elicitation": json.RawMessage(`{"type":"object","required":["username","email"],"properties":{
		"username":{"type":"string"},"email":{"type":"string"}}}`),
	"test_elicitation_sep1034_defaults": json.RawMessage(`{"type":"object","properties":{
		"name":{"type":"string","default":"John Doe"},
		"age":{"type":"integer","default":30},
		"score":{"type":"number","default":95.5},
		"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},
		"verified":{"type":"boolean","default":true}}}`),
	"test_elicitation_sep1330_enums": json.RawMessage(`{"type":"object","properties":{
		"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"One"},{"const":"value2","title":"Two"},{"const":"value3","title":"Three"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["One","Two","Three"]},
		"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"One"},{"const":"value2","title":"Two"},{"const":"value3","title":"Three"}]}}}}`),
}

// active are the tools that do something.
var active = map[string]func(*features, context.Context, *mcptypes.CallToolRequestParams) (*mcptypes.CallToolResult,
	error){
	"test_tool_with_logging":  (*features).log,
	"test_tool_with_progress": (*features).progress,
	"test_sampling":           (*features).sample,
	"test_reconnection":       (*features).log, // its stream begins with an event
	"test_error_handling": func(*features, context.Context, *mcptypes.CallToolRequestParams) (*mcptypes.CallToolResult,
		error) {
		return &mcptypes.CallToolResult{Content: mcptypes.Text("fails, as it should"), IsError: new(true)}, nil
	},
}

func listTools(context.Context, *mcptypes.ListToolsRequestParams) (*mcptypes.ListToolsResult, error) {
	var r mcptypes.ListToolsResult
	names := slices.Concat(slices.Collect(maps.Keys(fixed)), slices.Collect(maps.Keys(forms)),
		slices.Collect(maps.Keys(active)))
	slices.Sort(names)
	for _, name := range names {
		tool := mcptypes.Tool{Name: name, Description: new("tests " + name),
			InputSchema: json.RawMessage(`{"type":"object"}`)}
		if name == SchemaTool {
			tool.InputSchema = json.RawMessage(Schema)
		}
		r.Tools = append(r.Tools, tool)
	}
	return &r, nil
}

func (f *features) callTool(ctx context.Context, p *mcptypes.CallToolRequestParams) (*mcptypes.CallToolResult, error) {
	if content, ok := fixed[p.Name]; ok {
		return &mcptypes.CallToolResult{Content: content}, nil
	}
	if form, ok := forms[p.Name]; ok {
		return f.ask(ctx, p, form)
	}
	if act, ok := active[p.Name]; ok {
		return act(f, ctx, p)
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown tool %q", p.Name)
}

// ask shows a form and returns what was decided.
func (f *features) ask(
	ctx context.Context, p *mcptypes.CallToolRequestParams, form json.RawMessage,
) (*mcptypes.CallToolResult, error) {
	f.mu.Lock()
	asker := elicit.NewAsker(f.peer, f.client, nil)
	f.mu.Unlock()
	outcome := asker.Ask(ctx, &elicit.Question{Message: "Fill in the form of " + p.Name, Schema: form})
	return &mcptypes.CallToolResult{
		Content: mcptypes.Text("decision: " + string(outcome.Decision)),
		IsError: new(outcome.Decision != elicit.Approved),
	}, nil
}

// log logs three times, unless the client wants less of it.
func (f *features) log(ctx context.Context, _ *mcptypes.CallToolRequestParams) (*mcptypes.CallToolResult, error) {
	f.mu.Lock()
	level := f.level
	f.mu.Unlock()
	if level == mcptypes.LoggingLevelDebug || level == mcptypes.LoggingLevelInfo {
		id, _ := ctx.Value(requestKey{}).(jsonrpc.ID)
		meta := map[string]json.RawMessage{"requestId": id.AppendJSON(nil)} // the call's own stream takes it
		for _, what := range []string{"started", "processing", "completed"} {
			params := &mcptypes.LoggingMessageNotificationParams{Meta: meta, Level: mcptypes.LoggingLevelInfo,
				Data: fmt.Appendf(nil, "%q", what)}
			if err := mcptypes.NotificationsMessage.Notify(ctx, f.peer, params); err != nil {
				return nil, err
			}
		}
	}
	return &mcptypes.CallToolResult{Content: mcptypes.Text("logged")}, nil
}

// progress reports its progress three times, if the client wants to know.
func (f *features) progress(ctx context.Context, p *mcptypes.CallToolRequestParams) (*mcptypes.CallToolResult, error) {
	if p.Meta != nil && p.Meta.ProgressToken != nil {
		for _, done := range []float64{0, 50, 100} {
			params := &mcptypes.ProgressNotificationParams{ProgressToken: *p.Meta.ProgressToken, Progress: done,
				Total: new(100.0)}
			if err := mcptypes.NotificationsProgress.Notify(ctx, f.peer, params); err != nil {
				return nil, err
			}
		}
	}
	return &mcptypes.CallToolResult{Content: mcptypes.Text("done")}, nil
}

// sample has the client's model answer a prompt.
func (f *features) sample(ctx context.Context, p *mcptypes.CallToolRequestParams) (*mcptypes.CallToolResult, error) {
	var arguments struct{ Prompt string }
	if err := json.Unmarshal(p.Arguments, &arguments); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "arguments: %v", err)
	}
	answer, err := mcptypes.SamplingCreateMessage.Call(ctx, f.peer, &mcptypes.CreateMessageRequestParams{
		MaxTokens: 100,
		Messages: []mcptypes.SamplingMessage{{Role: mcptypes.RoleUser,
			Content: &mcptypes.TextContent{Text: arguments.Prompt}}},
	})
	if err != nil {
		return nil, err
	}
	said, ok := answer.Content.(*mcptypes.TextContent)
	if !ok {
		return nil, fmt.Errorf("the model said %T", answer.Content)
	}
	return &mcptypes.CallToolResult{Content: mcptypes.Text("the model said: " + said.Text)}, nil
}
