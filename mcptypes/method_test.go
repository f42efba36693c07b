package mcptypes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/google/go-cmp/cmp"
)

// wire is both sides of a connection: it serves calls with the functions that are registered on it.
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
	must.OK(t, err)
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
	} else if wrong, ok := errors.AsType[interface {
		error
		InvalidParams() (path, why string)
	}](err); !ok {
		t.Errorf("faulty params are no invalid ones: %v", err)
	} else if path, why := wrong.InvalidParams(); path != "/name" || why == "" {
		t.Errorf("with faulty params: %q, %q", path, why)
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

// TestMethodWithoutDecoder checks that a zero Method does not take params with another package.
func TestMethodWithoutDecoder(t *testing.T) {
	var m mcptypes.Method[struct{ A int }, mcptypes.Result]
	if _, err := m.DecodeParams([]byte(`{"a":1}`)); err == nil {
		t.Error("params were decoded")
	}
}
