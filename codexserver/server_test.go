package codexserver_test

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func TestEveryRequestIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil), nil)
		for _, tt := range []struct {
			method, params string
			want           jsonrpc.Code
		}{
			{"server/discover", `{}`, jsonrpc.CodeMethodNotFound}, // says no version
			{"prompts/list", `{}`, jsonrpc.CodeMethodNotFound},
			{"resources/read", `{}`, jsonrpc.CodeMethodNotFound},
			{"initialize", `{"protocolVersion":5}`, jsonrpc.CodeInvalidParams},
			{"tools/call", `{"arguments":{}}`, jsonrpc.CodeInvalidParams},
			{"tools/call", `{"name":7}`, jsonrpc.CodeInvalidParams},
			{"logging/setLevel", `{"level":"loud"}`, jsonrpc.CodeInvalidParams},
		} {
			err := c.Call(t.Context(), tt.method, json.RawMessage(tt.params), nil)
			if !errors.Is(err, tt.want) {
				t.Errorf("%s %s: %v, want %v", tt.method, tt.params, err, tt.want)
			}
		}
		if err := c.Call(t.Context(), "ping", nil, nil); err != nil {
			t.Errorf("ping: %v", err)
		}
	})
}
