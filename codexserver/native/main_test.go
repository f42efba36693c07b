package native_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine/enginetest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

var whole = flag.Bool("whole", nightly.Tests(), "cut every line, fail every write, play every task")

// TestMain lets the test binary act as another program, which $PLAY names.
func TestMain(m *testing.M) {
	if os.Getenv("PLAY") == "without Main" {
		os.Exit(m.Run())
	}
	native.Main() // this may be a launcher
	switch os.Getenv("PLAY") {
	case "":
		_ = flag.Set("test.parallel", "5") // most of them wait
		os.Exit(memdir.Run(m))
	case "mcp server":
		playServer()
	}
}

func playServer() {
	mux := &jsonrpc.Mux{}
	peer := jsonrpc.NewPeer(jsonrpc.Stdio(), mux, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	mux.HandleRaw("initialize", func(context.Context, json.RawMessage) (any, error) {
		return json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"instructions":` +
			cmp.Or(os.Getenv("INSTRUCTIONS"), "null") + `,"serverInfo":{"name":"toy","version":"1"}}`), nil
	})
	var changed atomic.Bool
	mux.HandleRaw("tools/list", func(context.Context, json.RawMessage) (any, error) {
		if changed.Load() {
			return json.RawMessage(`{"tools":[{"name":"change"},{"name":"later"}]}`), nil
		}
		return json.RawMessage(`{"tools":[{"name":"change"},{"name":"echo","inputSchema":{"type":"object","properties":{"x":{"type":"string"}}}},
{"name":"ask me","inputSchema":{}},{"name":"fail","inputSchema":{"type":"object"}},{"name":"flood","inputSchema":{"type":"object"}},{"name":"die","inputSchema":{"type":"object"}},{"inputSchema":7}]}`), nil
	})
	mux.HandleRaw("tools/call", func(ctx context.Context, params json.RawMessage) (any, error) {
		var call struct {
			Name      string
			Arguments struct{ X string }
		}
		if err := json.Unmarshal(params, &call); err != nil {
			return nil, err
		}
		text := "echo:" + call.Arguments.X
		switch call.Name {
		case "ask me":
			var answer json.RawMessage
			err := peer.Call(ctx, "elicitation/create", json.RawMessage(`{"message":"May I?","requestedSchema":{"type":"object","properties":{}}}`), &answer)
			text = fmt.Sprintf("%s %v", answer, err)
		case "fail":
			return nil, &jsonrpc.Error{Code: -32000, Message: "out of order"}
		case "flood":
			return nil, &jsonrpc.Error{Code: -32000, Message: strings.Repeat("out of order ", 1<<16)}
		case "die":
			os.Exit(3)
		case "change":
			changed.Store(true)
			if err := peer.Notify(ctx, "notifications/tools/list_changed", nil); err != nil {
				return nil, err
			}
		}
		type block struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		return map[string]any{"content": []block{{"text", text}}}, nil
	})
	_ = peer.Run(context.Background())
}

// TestPromises holds the engine against the promises of package engine, unless whole on one of the two wires.
func TestPromises(t *testing.T) {
	t.Parallel()
	for n, wire := range []string{"chat", "responses"} {
		if !servertest.Plays(n, *whole) {
			continue
		}
		t.Run(wire, func(t *testing.T) {
			enginetest.Run(t, func(t *testing.T) *enginetest.Subject { return subject(t, wire) })
		})
	}
}

func subject(t *testing.T, wire string) *enginetest.Subject {
	model := providertest.New()
	t.Cleanup(model.Close)
	home := "HOME=" + t.TempDir() // without the profile of who runs the tests
	e := open(t, native.Options{CodexHome: t.TempDir(), Environ: []string{"PATH=" + os.Getenv("PATH"), home}, Overrides: map[string]any{
		"model":                                   "mock-model",
		"model_provider":                          "mock",
		"model_providers.mock.name":               "mock",
		"model_providers.mock.base_url":           model.BaseURL(),
		"model_providers.mock.wire_api":           wire,
		"model_providers.mock.stream_max_retries": int64(0),
	}})
	return &enginetest.Subject{
		Engine: e,
		Config: protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted, Sandbox: protocol.SandboxDangerFullAccess},
		Script: func(steps ...enginetest.Step) {
			var turns []providertest.Turn
			for _, s := range steps {
				turns = append(turns, providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
					if s.Asked != nil {
						s.Asked(string(r.Body))
					}
					switch {
					case s.Fail:
						return providertest.Turn{Status: 400, Body: `{"error":{"message":"no"}}`}
					case s.Command != nil:
						return providertest.Call(providertest.Shell("call", s.Command...))
					}
					return providertest.Say(s.Text)
				}})
			}
			model.Reset(turns...)
		},
	}
}
