// Package providertest is a scripted model provider for tests, as net/http/httptest is a web
// server for tests. It serves OpenAI's Chat Completions and Responses, with streaming, on
// the loopback interface, and records its requests:
//
//	provider := providertest.New(
//		providertest.Turn{ToolCalls: []providertest.ToolCall{
//			providertest.Shell("call_1", "git", "init"),
//		}},
//		providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
//			return providertest.Say("git said: " + r.LastToolOutput())
//		}},
//	)
//	defer provider.Close()
//
//	e, err := native.New(&native.Options{CodexHome: t.TempDir(), Overrides: map[string]any{
//		"model":                         "any",
//		"model_provider":                "test",
//		"model_providers.test.name":     "test",
//		"model_providers.test.base_url": provider.BaseURL(),
//	}})
//
// Every client of OpenAI can use the same address:
//
//	client ── POST /v1/chat/completions ──▶ Server ── the next Turn ──▶ a stream
//	       └─ POST /v1/responses ─────────▶   └── Requests(): the requests so far
//
// # Script
//
// Each request takes the first unused [Turn] that matches it. Without one, the answer has
// status 400, which clients do not retry.
//
// A turn is data: the model's text, its reasoning, its tool calls and its usage. It can
// also misbehave: answer with another status, send bytes that are not a stream, wait,
// stall, break off at any byte. It waits for a channel that the test closes, never for a
// time. A turn with a Func is made when its request arrives, so an answer can repeat what
// a tool printed.
//
// # Concurrency
//
// A [Server] is safe for concurrent use. Concurrent requests take the turns in the order
// in which they arrive; [Turn.Match] keeps conversations apart.
//
// [Server.Close] ends the requests that wait or stall, and returns when all have ended.
//
// # What can go wrong
//
// If a test ends with unused turns, the client has sent fewer requests than expected; see
// [Server.Requests]. Status 400 with "no turn" in its body means that the script is too
// short, or that no [Turn.Match] matches. [New] panics when it cannot listen on loopback.
//
// # Where to go next
//
// Package native is the engine that it was made for. The nested module test/interop tries it with
// OpenAI's Go library.
package providertest
