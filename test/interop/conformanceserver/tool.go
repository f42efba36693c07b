package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/codexmcp/codexmcp/test/interop/conformanceserver/legacy"
)

// A tool is served by a function of its call. Where nothing depends on who
// answers what, and when, it may do without a state.
type tool struct {
	name      string
	serve     func(context.Context, *call) (modern.AnyCallToolResult, error)
	stateless bool
	schema    string // of its arguments; "" is any object
}

// tools are in the order in which they are listed.
func tools() []tool {
	return []tool{
		{name: "test_simple_text", serve: show(text("a text"))},
		{name: "test_image_content", serve: show(image())},
		{name: "test_audio_content", serve: show(&modern.AudioContent{Data: wav, MimeType: "audio/wav"})},
		{name: "test_embedded_resource", serve: show(embedded("test://embedded-resource", "text/plain",
			"an embedded text"))},
		{name: "test_multiple_content_types",
			serve: show(text("several"), image(), embedded("test://mixed", "application/json", `{"test":"data"}`))},
		{name: "test_error_handling", serve: refuse},
		{name: "test_thread", serve: show(text("a text")),
			schema: `{"type":"object","properties":{"threadId":{"type":"string","x-mcp-header":"Thread-Id"}}}`},
		{name: legacy.SchemaTool, serve: show(text("its input schema is what matters")), schema: legacy.Schema},
		{name: "test_tool_with_progress", serve: progress},
		{name: "greet", serve: greet},
		{name: "slow_compute", serve: slowCompute},
		{name: "failing_job", serve: always(fail)},
		{name: "protocol_error_job", serve: always(crash)},
		{name: "confirm_delete", serve: always(confirmDelete)},
		{name: "multi_input", serve: always(askBoth)},
		{name: "test_tool_with_task", serve: askThenWork},
		{name: "test_missing_capability", serve: needSampling},
		{name: "test_streaming_elicitation", serve: confirm},
		{name: "test_logging_tool", serve: log},
		{name: "test_trigger_tool_change", serve: changeTools},
		{name: "test_trigger_prompt_change", serve: changePrompts},
		{name: "test_input_required_result_elicitation", serve: askName, stateless: true},
		{name: "test_input_required_result_sampling", serve: sample},
		{name: "test_input_required_result_list_roots", serve: listRoots},
		{name: "test_input_required_result_request_state", serve: confirm},
		{name: "test_input_required_result_tampered_state", serve: confirm},
		{name: "test_input_required_result_multiple_inputs", serve: askAll},
		{name: "test_input_required_result_multi_round", serve: askTwice},
		{name: "test_input_required_result_capabilities", serve: askAll},
	}
}

func listTools(context.Context, *modern.PaginatedRequestParams) (*modern.ListToolsResult, error) {
	r := &modern.ListToolsResult{Meta: identity, CacheScope: modern.CacheScopePublic, TTLMs: ttl.Milliseconds()}
	for _, t := range tools() {
		r.Tools = append(r.Tools, modern.Tool{Name: t.name, Description: new("tests " + t.name),
			InputSchema: json.RawMessage(cmp.Or(t.schema, `{"type":"object"}`))})
	}
	return r, nil
}

func (s *server) callTool(ctx context.Context, p *modern.CallToolRequestParams) (modern.AnyCallToolResult, error) {
	all := tools()
	i := slices.IndexFunc(all, func(t tool) bool { return t.name == p.Name })
	if i < 0 {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "/name: unknown tool %q", p.Name)
	}
	c, err := s.newCall(ctx, "tools/call", p.Name, p.Arguments, &p.Meta, p.RequestState)
	if err != nil {
		return nil, err
	}
	if all[i].stateless {
		c.stateless, c.answers = true, originOf(ctx).responses
	}
	return all[i].serve(ctx, c)
}

func say(format string, args ...any) *modern.CallToolResult {
	return &modern.CallToolResult{Meta: identity, Content: modern.Text(fmt.Sprintf(format, args...))}
}

// decided is the result of a tool that did what was approved, or nothing.
func decided(out outcome, format string, args ...any) *modern.CallToolResult {
	if out.Decision != elicit.Approved {
		return &modern.CallToolResult{Meta: identity, Content: modern.Text("not done: " + out.ForModel()),
			IsError: new(true)}
	}
	return say(format, args...)
}

// form is a question with one field of text.
func form(message, field string) *elicit.Question {
	return &elicit.Question{
		Message: message, NotDone: "nothing was done", Once: true,
		Schema: fmt.Appendf(nil, `{"type":"object","properties":{%q:{"type":"string"}},"required":[%[1]q]}`, field),
	}
}

var (
	nameForm  = form("What is your name?", "name")
	colorForm = form("What is your favorite color?", "color")
	okForm    = &elicit.Question{
		Message: "Is that all right?", NotDone: "nothing was done", Once: true,
		Schema: json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`),
	}
)

func greet(_ context.Context, c *call) (modern.AnyCallToolResult, error) {
	var a struct {
		Name string `json:"name"`
	}
	if err := arguments(c.arguments, &a); err != nil {
		return nil, err
	}
	return say("Hello, %s!", a.Name), nil
}

// needSampling cannot do without it.
func needSampling(_ context.Context, c *call) (modern.AnyCallToolResult, error) {
	if c.meta.ClientCapabilities.Sampling == nil {
		return nil, lacks("sampling", modern.ClientCapabilities{Sampling: &modern.ClientCapabilitiesSampling{}})
	}
	return say("sampling is declared"), nil
}

// log logs if the request asks for it.
func log(ctx context.Context, c *call) (modern.AnyCallToolResult, error) {
	if level := c.meta.LogLevel; level != nil &&
		(*level == modern.LoggingLevelDebug || *level == modern.LoggingLevelInfo) {
		err := modern.NotificationsMessage.Notify(ctx, originOf(ctx).peer, &modern.LoggingMessageNotificationParams{
			Level: modern.LoggingLevelInfo, Data: modern.JSONValue(`"working"`),
		})
		if err != nil {
			return nil, fmt.Errorf("log: %w", err)
		}
	}
	return say("done"), nil
}

// progress reports its progress if the request wants to know.
func progress(ctx context.Context, c *call) (modern.AnyCallToolResult, error) {
	for _, done := range []float64{0, 50, 100} {
		if c.meta.ProgressToken == nil {
			continue
		}
		err := modern.NotificationsProgress.Notify(ctx, originOf(ctx).peer, &modern.ProgressNotificationParams{
			ProgressToken: *c.meta.ProgressToken, Progress: done, Total: new(100.0),
		})
		if err != nil {
			return nil, fmt.Errorf("progress: %w", err)
		}
	}
	return say("done"), nil
}

// refuse is a tool that fails, which a model can read.
func refuse(context.Context, *call) (modern.AnyCallToolResult, error) {
	r := say("it fails, as it should")
	r.IsError = new(true)
	return r, nil
}

func askName(_ context.Context, c *call) (modern.AnyCallToolResult, error) {
	out, ok := c.elicit("user_name", nameForm)
	if !ok {
		return c.unanswered()
	}
	return decided(out, "Hello, %s!", out.field("name")), nil
}

func confirm(_ context.Context, c *call) (modern.AnyCallToolResult, error) {
	out, ok := c.elicit("confirm", okForm)
	if !ok {
		return c.unanswered()
	}
	return decided(out, "state-ok"), nil
}

// askTwice knows its second question when the first is answered.
func askTwice(_ context.Context, c *call) (modern.AnyCallToolResult, error) {
	name, ok := c.elicit("step1", nameForm)
	if !ok {
		return c.unanswered()
	}
	color, ok := c.elicit("step2", colorForm)
	if !ok {
		return c.unanswered()
	}
	return decided(color, "%s likes %s", name.field("name"), color.field("color")), nil
}

func sample(_ context.Context, c *call) (modern.AnyCallToolResult, error) {
	answer, ok := c.sample("capital_question", "What is the capital of France?")
	if !ok {
		return c.unanswered()
	}
	return say("%s", answer), nil
}

func listRoots(_ context.Context, c *call) (modern.AnyCallToolResult, error) {
	roots, ok := c.roots("client_roots")
	if !ok {
		return c.unanswered()
	}
	return say("roots: %q", roots), nil
}

// askAll asks all that the client can answer in one round.
func askAll(_ context.Context, c *call) (modern.AnyCallToolResult, error) {
	name, named := c.elicit("user_name", nameForm)
	greeting, greeted := c.sample("greeting", "Write a greeting.")
	roots, listed := c.roots("client_roots")
	if !named || !greeted || !listed {
		return c.unanswered()
	}
	return say("%s %s, roots: %q", greeting, name.field("name"), roots), nil
}
