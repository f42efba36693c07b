// Package providertest is a model provider that answers by script, as net/http/httptest
// is a web server for tests. It speaks OpenAI's Chat Completions and Responses with
// streaming, on the loopback interface, and keeps the requests that it got:
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
// Whatever else speaks to OpenAI takes the same address:
//
//	client ── POST /v1/chat/completions ──▶ Server ── the next Turn ──▶ a stream
//	       └─ POST /v1/responses ─────────▶   └── Requests(): what was asked
//
// # Script
//
// Each request takes the first [Turn] that is not used up and that matches it. A request
// for which there is none is answered with status 400, which clients do not repeat.
//
// A turn is data: what the model says, what it thinks, which tools it calls, how many
// tokens it counts. It can also misbehave: answer with another status, send bytes that
// are not a stream, wait, stall, break off at any byte. Waiting is for a channel that the
// test closes, never for a time. A turn with a Func is made when its request arrives,
// which is how an answer can repeat what a tool printed.
//
// # Concurrency
//
// A [Server] is safe for concurrent use. Requests that run side by side take turns in the
// order in which they arrive; [Turn.Match] keeps conversations apart.
//
// [Server.Close] ends what still waits or stalls, and waits for all of it.
//
// # What can go wrong
//
// A test that ends with unused turns has asked less often than it was written to; look at
// [Server.Requests]. Status 400 with "no turn" in its body means that the script was too
// short, or that no [Turn.Match] fitted. [New] panics when nothing can listen on
// loopback.
//
// # Where to go next
//
// The nested module openaigo drives it with the official client for Go. Package native is
// the engine that it was made for.
package providertest
