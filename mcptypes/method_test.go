package mcptypes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/google/go-cmp/cmp"
)

// wire is both sides of a connection: it serves calls with the functions that are registered
// on it.
type wire map[string]func(context.Context, json.RawMessage) (any, error)

func (w wire) HandleRaw(method string, f func(context.Context, json.RawMessage) (any, error)) {
	w[method] = f
}

func (w wire) serve(ctx context.Context, method string, params any) (any, error) {
	var raw json.RawMessage
	if params != nil {
		b, err := mcptypes.Encode(params)
		if err != nil {
			return nil, err
		}
		raw = b
	}
	return w[method](ctx, raw)
}

func (w wire) Call(ctx context.Context, method string, params, result any) error {
	answer, err := w.serve(ctx, method, params)
	if err != nil {
		return err
	}
	b, err := mcptypes.Encode(answer)
	if err != nil {
		return err
	}
	if raw, ok := result.(*json.RawMessage); ok {
		*raw = b
		return nil
	}
	return mcptypes.Decode(b, result)
}

func (w wire) Notify(ctx context.Context, method string, params any) error {
	_, err := w.serve(ctx, method, params)
	return err
}

func TestMethod(t *testing.T) {
	w := make(wire)
	mcptypes.ToolsCall.Handle(w, func(_ context.Context, p *mcptypes.CallToolRequestParams) (*mcptypes.CallToolResult, error) {
		if p.Name == "none" {
			return nil, nil
		}
		if p.Name == "bad" {
			return nil, errors.New("it failed")
		}
		return &mcptypes.CallToolResult{Content: mcptypes.Text(p.Name, string(p.Arguments))}, nil
	})
	ctx := context.Background()
	got, err := mcptypes.ToolsCall.Call(ctx, w, &mcptypes.CallToolRequestParams{Name: "x", Arguments: raw(`{"a":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&mcptypes.CallToolResult{Content: mcptypes.Text("x", `{"a":1}`)}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for name, want := range map[string]string{"bad": "it failed", "none": "mcptypes: tools/call: handler returned neither result nor error"} {
		if _, err := mcptypes.ToolsCall.Call(ctx, w, &mcptypes.CallToolRequestParams{Name: name}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	var faulty *mcptypes.DecodeError
	if _, err := mcptypes.ToolsCall.Call(ctx, w, nil); !errors.As(err, &faulty) {
		t.Errorf("without params: %v", err)
	}
	if _, err := w["tools/call"](ctx, raw(`{"name":5}`)); !errors.As(err, &faulty) || faulty.Path != "/name" {
		t.Errorf("with faulty params: %v", err)
	}
}

func TestMethodWithoutParams(t *testing.T) {
	w, calls := make(wire), 0
	mcptypes.ToolsList.Handle(w, func(_ context.Context, p *mcptypes.ListToolsRequestParams) (*mcptypes.ListToolsResult, error) {
		calls++
		if diff := cmp.Diff(&mcptypes.ListToolsRequestParams{}, p); diff != "" {
			return nil, fmt.Errorf("params (-want +got)\n%s", diff)
		}
		return &mcptypes.ListToolsResult{}, nil
	})
	if _, err := mcptypes.ToolsList.Call(context.Background(), w, nil); err != nil {
		t.Error(err)
	}
	for _, params := range []string{``, `null`, `{}`} {
		if _, err := w["tools/list"](context.Background(), raw(params)); err != nil {
			t.Errorf("%q: %v", params, err)
		}
	}
	if calls != 4 {
		t.Errorf("%d calls", calls)
	}
}

func TestNotification(t *testing.T) {
	w := make(wire)
	var got mcptypes.ProgressNotificationParams
	mcptypes.NotificationsProgress.Handle(w, func(_ context.Context, p *mcptypes.ProgressNotificationParams) error {
		got = *p
		return errors.New("for the log")
	})
	sent := mcptypes.ProgressNotificationParams{ProgressToken: mcptypes.StringToken("t"), Progress: 0.5}
	if err := mcptypes.NotificationsProgress.Notify(context.Background(), w, &sent); err == nil || err.Error() != "for the log" {
		t.Error(err)
	}
	same := cmp.Comparer(func(a, b mcptypes.ProgressToken) bool { return a == b })
	if diff := cmp.Diff(sent, got, same); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := mcptypes.NotificationsProgress.Notify(context.Background(), w, nil); err == nil {
		t.Error("no error for missing params")
	}
}

// TestRequired checks of each kind of method that params are needed exactly if it says so.
func TestRequired(t *testing.T) {
	type method interface {
		Name() string
		ParamsRequired() bool
	}
	type params = mcptypes.ListToolsRequestParams
	for _, required := range []bool{true, false} {
		request := mcptypes.NewMethod[params, mcptypes.ListToolsResult]("a", required)
		union := mcptypes.NewUnionMethod[params, mcptypes.ContentBlock]("b", required, mcptypes.Decode)
		notification := mcptypes.NewNotification[params]("c", required)
		for name, is := range map[string]method{"a": request, "b": union, "c": notification} {
			if is.Name() != name || is.ParamsRequired() != required {
				t.Errorf("%s is %s, %t", name, is.Name(), is.ParamsRequired())
			}
		}
		for _, raw := range []string{``, `null`, `{}`, `[]`} {
			_, err := request.DecodeParams([]byte(raw))
			_, err2 := union.DecodeParams([]byte(raw))
			_, err3 := notification.DecodeParams([]byte(raw))
			want := raw == `[]` || required && raw != `{}`
			if (err != nil) != want || (err2 != nil) != want || (err3 != nil) != want {
				t.Errorf("required %t, params %q: %v, %v, %v", required, raw, err, err2, err3)
			}
		}
	}
}

// TestUnionMethod calls a method whose result is one of several types.
func TestUnionMethod(t *testing.T) {
	m := mcptypes.NewUnionMethod[mcptypes.CallToolRequestParams, mcptypes.ContentBlock]("x", true, mcptypes.Decode)
	w := make(wire)
	m.Handle(w, func(_ context.Context, p *mcptypes.CallToolRequestParams) (mcptypes.ContentBlock, error) {
		switch p.Name {
		case "none":
			return nil, nil
		case "bad":
			return nil, errors.New("it failed")
		}
		return &mcptypes.TextContent{Text: p.Name}, nil
	})
	for name, want := range map[string]string{"good": "<nil>", "bad": "it failed", "none": "mcptypes: x: handler returned neither result nor error"} {
		got, err := m.Call(t.Context(), w, &mcptypes.CallToolRequestParams{Name: name})
		if text, _ := got.(*mcptypes.TextContent); fmt.Sprint(err) != want || (text == nil) != (err != nil) || text != nil && text.Text != name {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := m.Call(t.Context(), w, nil); err == nil {
		t.Error("without params: no error")
	}
	broken := mcptypes.NewUnionMethod[mcptypes.CallToolRequestParams, mcptypes.ContentBlock]("x", true, func([]byte, any) error { return errors.New("undecodable") })
	if _, err := broken.Call(t.Context(), w, &mcptypes.CallToolRequestParams{Name: "good"}); err == nil || err.Error() != "undecodable" {
		t.Errorf("a result that cannot be decoded: %v", err)
	}
}

// TestMethods compares Methods with the expected table.
func TestMethods(t *testing.T) {
	var got []string
	for _, m := range mcptypes.Methods() {
		from := map[[2]bool]string{{true, false}: "client", {false, true}: "server", {true, true}: "either"}[[2]bool{m.FromClient, m.FromServer}]
		if m.IsNotification() != (m.Result == "") {
			t.Errorf("%s: a notification with a result", m.Name)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s", from, m.Name, m.Params, m.Result))
	}
	want := []string{
		"client completion/complete CompleteRequestParams CompleteResult",
		"server elicitation/create ElicitRequestParams ElicitResult",
		"client initialize InitializeRequestParams InitializeResult",
		"client logging/setLevel SetLevelRequestParams EmptyResult",
		"either notifications/cancelled CancelledNotificationParams ",
		"client notifications/initialized InitializedNotificationParams ",
		"server notifications/message LoggingMessageNotificationParams ",
		"either notifications/progress ProgressNotificationParams ",
		"server notifications/prompts/list_changed PromptListChangedNotificationParams ",
		"server notifications/resources/list_changed ResourceListChangedNotificationParams ",
		"server notifications/resources/updated ResourceUpdatedNotificationParams ",
		"client notifications/roots/list_changed RootsListChangedNotificationParams ",
		"server notifications/tools/list_changed ToolListChangedNotificationParams ",
		"either ping PingRequestParams EmptyResult",
		"client prompts/get GetPromptRequestParams GetPromptResult",
		"client prompts/list ListPromptsRequestParams ListPromptsResult",
		"client resources/list ListResourcesRequestParams ListResourcesResult",
		"client resources/read ReadResourceRequestParams ReadResourceResult",
		"client resources/subscribe SubscribeRequestParams EmptyResult",
		"client resources/templates/list ListResourceTemplatesRequestParams ListResourceTemplatesResult",
		"client resources/unsubscribe UnsubscribeRequestParams EmptyResult",
		"server roots/list ListRootsRequestParams ListRootsResult",
		"server sampling/createMessage CreateMessageRequestParams CreateMessageResult",
		"client tools/call CallToolRequestParams CallToolResult",
		"client tools/list ListToolsRequestParams ListToolsResult",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !slices.IsSortedFunc(mcptypes.Methods(), func(a, b mcptypes.MethodInfo) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	}) {
		t.Error("the table is not sorted by name")
	}
}

func TestDecodeResults(t *testing.T) {
	got, err := mcptypes.DecodeServerResult("tools/call", []byte(`{"content":[{"type":"text","text":"x"}]}`))
	if diff := cmp.Diff(mcptypes.ServerResult(&mcptypes.CallToolResult{Content: mcptypes.Text("x")}), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	answer, err := mcptypes.DecodeClientResult("elicitation/create", []byte(`{"action":"decline"}`))
	if diff := cmp.Diff(mcptypes.ClientResult(&mcptypes.ElicitResult{Action: "decline"}), answer); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if _, err := mcptypes.DecodeServerResult("tools/call", []byte(`{}`)); err == nil {
		t.Error("a result without content was accepted")
	}
	for _, method := range []string{"elicitation/create", "notifications/progress", "x", ""} {
		if _, err := mcptypes.DecodeServerResult(method, []byte(`{}`)); err == nil {
			t.Errorf("a server answered %q", method)
		}
	}
}

// TestDecodeParams decodes the params of every method of the table, and of unknown ones.
func TestDecodeParams(t *testing.T) {
	for _, m := range mcptypes.Methods() {
		got, err := mcptypes.DecodeParams(m.Name, []byte(`{"x":1,"X":2}`))
		if wrong, ok := errors.AsType[*mcptypes.DecodeError](err); ok && got == nil {
			if wrong.Msg != "required, but absent" {
				t.Errorf("%s: %v", m.Name, err)
			}
			continue
		}
		if name := fmt.Sprintf("%T", got); err != nil || name != "*mcptypes."+m.Params {
			t.Errorf("%s: %s, %v, want %s", m.Name, name, err, m.Params)
		}
	}
	got, err := mcptypes.DecodeParams("tools/call", []byte(`{"name":"a","arguments":{"b":1}}`))
	if call, ok := got.(*mcptypes.CallToolRequestParams); err != nil || !ok || call.Name != "a" || string(call.Arguments) != `{"b":1}` {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, tt := range []struct{ method, params, want string }{
		{"tools/call", ``, "mcptypes: tools/call needs params"},
		{"tools/call", `{"name":1}`, "mcptypes: /name: want a string, found a number"},
		{"tools/call", `{"name":"a","name":"b"}`, "mcptypes: /name: duplicate member"},
		{"tools/cal", `{}`, `mcptypes: no params type for the method "tools/cal"`},
		{"tools/call", `null`, "mcptypes: want an object, found null"},
		{"tools/call", `{"name":"a"`, "mcptypes: unexpected EOF"},
		{"tools/list", ``, ""},
		{"tools/list", `null`, ""},
	} {
		got, err := mcptypes.DecodeParams(tt.method, []byte(tt.params))
		if text := fmt.Sprint(err); tt.want == "" && (err != nil || got == nil) || tt.want != "" && (text != tt.want || got != nil) {
			t.Errorf("%s %s: %v, %v, want %s", tt.method, tt.params, got, err, tt.want)
		}
	}
}

// TestMethodWithoutDecoder checks that a zero Method does not take params with another package.
func TestMethodWithoutDecoder(t *testing.T) {
	var m mcptypes.Method[struct{ A int }, mcptypes.Result]
	if _, err := m.DecodeParams([]byte(`{"a":1}`)); err == nil {
		t.Error("params were decoded")
	}
}
