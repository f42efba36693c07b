package jsonrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

type wrongParams struct{ error }

func (wrongParams) InvalidParams() (path, why string) { return "/a/0", "want a string" }

// TestHandleRawReportsInvalidParams checks that an error with InvalidParams, as package
// mcptypes returns it, is sent with the path of the fault. Other errors of a decoder count as
// errors of the handler.
func TestHandleRawReportsInvalidParams(t *testing.T) {
	mux := &jsonrpc.Mux{}
	mux.HandleRaw("wrong", func(context.Context, json.RawMessage) (any, error) {
		return nil, fmt.Errorf("read: %w", wrongParams{errors.New("bad")})
	})
	mux.HandleRaw("other", func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("bad") })
	for method, want := range map[string]*jsonrpc.Error{
		"wrong": {Code: jsonrpc.CodeInvalidParams, Message: "invalid params at /a/0: want a string", Data: json.RawMessage(`{"path":"/a/0"}`)},
		"other": nil,
	} {
		_, err := mux.ServeRPC(t.Context(), &jsonrpc.Request{Method: method})
		var got *jsonrpc.Error
		if errors.As(err, &got) != (want != nil) {
			t.Errorf("%s: %v", method, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", method, diff)
		}
	}
	jsonrpc.HandleNotify(mux, "note", func(context.Context, struct{ A int }) error { return nil })
	if _, err := mux.ServeRPC(t.Context(), &jsonrpc.Request{Method: "note", Params: []byte(`{"A":"x"}`)}); err == nil {
		t.Error("wrong params of a notification are no error")
	}
	raw := ""
	jsonrpc.HandleNotify(mux, "raw", func(_ context.Context, params json.RawMessage) error {
		raw = string(params)
		return errors.New("refused")
	})
	if _, err := mux.ServeRPC(t.Context(), &jsonrpc.Request{Method: "raw", Params: []byte(`[1]`)}); err == nil || raw != "[1]" {
		t.Errorf("raw params are %q, %v", raw, err)
	}
}
