package codexserver_test

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
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

// TestBusyAfterTheClient has a turn in the background outlive its client. A server that stops idle
// principals asks Busy.
func TestBusyAfterTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := codexserver.New(servertest.Script(), nil).Principal(t.Context(), "ann")
		c := servertest.Connect(t, p, nil)
		if p.Busy() {
			t.Error("busy without a turn")
		}
		must.Get(c.Tool(t.Context(), "codex", map[string]any{"prompt": "wait:1h", "background": true}))(t)
		for _, connected := range []bool{true, false} {
			if !connected {
				c.Close()
				synctest.Wait()
			}
			if !p.Busy() {
				t.Errorf("not busy during the turn, connected %t", connected)
			}
		}
		time.Sleep(2 * time.Hour)
		if p.Busy() {
			t.Error("busy after the turn")
		}
		must.Check(t, p.Close())
	})
}
