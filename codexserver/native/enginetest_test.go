package native_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine/enginetest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestPromises holds the engine against the promises of package engine, unless whole on one of
// the two wires.
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
	e := open(t, native.Options{CodexHome: t.TempDir(), Overrides: map[string]any{
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
