// Package native is the embedded engine: a coding agent in Go that needs no Codex
// installed. It asks any OpenAI-compatible model, runs what the model calls for, within
// the approval policy, and keeps conversations in files:
//
//	Turn(input) ──▶ history ──▶ model ──▶ tools, approvals ──┐
//	                   ▲                                     │
//	                   └────────── outputs ◀─────────────────┘
//
// until a response calls nothing. Behind the MCP server it needs a few lines, of which
// the first is the first of your main:
//
//	native.Main()
//	e, err := native.New(nil) // $CODEX_HOME/config.toml
//	if err != nil {
//		return err
//	}
//	defer e.Close()
//	return codexserver.New(e, nil).Serve(ctx, jsonrpc.Stdio())
//
// and without a server an [engine.Host] of yours, which receives events and answers
// questions; the example has one in twelve lines:
//
//	c, err := e.Start(ctx, protocol.Config{Cwd: dir}, host)
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	err = c.Turn(ctx, protocol.TurnInput{Items: protocol.TextInput("Tidy up.")})
//
// # Configuration
//
// The engine reads Codex's config.toml again for each conversation: model,
// model_providers, profiles, approval_policy, sandbox_mode and their like. A provider
// needs a base_url and nothing else, so that Ollama, LM Studio, vLLM and llama.cpp work
// as they are:
//
//	model = "qwen3-coder"
//	model_provider = "local"
//	[model_providers.local]
//	base_url = "http://localhost:11434/v1"
//
// [Options].Overrides sets the same keys from Go; docs/configuration.md of the module
// lists them all.
//
// # Guarantees
//
//   - A command runs only when the approval policy lets it or the host's answer
//     says approved. A response that breaks off runs nothing: it is asked for
//     again, whole.
//   - Under the sandbox modes read-only and workspace-write a command runs
//     confined, unless the user approved it. Where it cannot be confined, it is
//     asked for, or refused under the policy never. Under the policy untrusted a
//     command that is known to be safe runs in the read-only sandbox without
//     network, whatever the mode.
//   - A turn ends with an event that says how, within its [Limits], whatever the
//     model does.
//   - When a command in the sandbox ends, or any command is interrupted or runs
//     into its timeout, all processes that it started are gone before the turn
//     continues. What an approved command left running ends with its conversation,
//     and everything when this process dies in whatever way. This holds on
//     Linux for programs that begin with [Main], since their keeper processes
//     are the program started again. Any other kills a command's processes at its
//     end by their session, their parents and an inherited descriptor, as long as
//     it lives: a daemon that closed all that it inherited is not found.
//   - A message that is sent to a running turn is in the history before the
//     model's next request, or at the turn's end.
//   - What an interrupted turn did stays in the history; a response of which
//     nothing was done is dropped.
//   - Every step is in the conversation's file before the next one begins, so
//     that a killed process loses at most what it was doing.
//
// # Conversations
//
// A conversation is kept in $CODEX_HOME/sessions as Codex keeps it. [Engine.Resume]
// continues it in the same file. One that is not used for [Limits].Idle frees its memory,
// and reads its file at its next turn; what was approved for the session is then asked
// about again. Of several servers one at a time runs a turn of a conversation. A history
// that fills nine tenths of the model's context window, or reaches
// model_auto_compact_token_limit, is replaced by the user's own words and a summary that
// the model writes.
//
// # Cost
//
// A turn costs what its request is long, since the request holds the history.
// BenchmarkLongConversation, with 10 KB of new history a turn, on one core:
//
//	turn    request    engine's part of the turn
//	  50     0.5 MB      0.2 ms  |
//	 500     5.0 MB      4.4 ms  |#################
//
// The live heap is the history itself. BenchmarkStream reads a piece of an answer in 5 to
// 9 µs.
//
// # What can go wrong
//
//   - config.toml does not parse, or a value has the wrong type: [New] says where.
//     A missing provider, profile or key is the error of the conversation that
//     needs it.
//   - The provider refuses, breaks off or is silent: it is asked again, four and
//     five times, then the turn fails with its words. Keys are taken out of them.
//   - The model calls tools that are not there, with invalid arguments, or
//     without end: it gets an error, and [Limits] end the turn.
//   - The conversation's file cannot be written, such as on a full disk: an event
//     says so, the conversation continues, and what is missing is written later.
//     A file that was removed is written again.
//   - Another server runs a turn of the conversation: Resume and Turn fail, and
//     their errors name its process.
//   - There is no sandbox on this system: an event says so, and commands are asked
//     for.
//
// # What it does not do
//
// It confines commands on Linux and macOS alone. It uses no MCP servers by URL and makes
// no model requests with a ChatGPT sign-in. Tools of configured MCP servers are called
// without a question. It does not speak MCP to clients; package codexserver does.
//
// # Where to go next
//
// Package providertest is a model for tests, package engine what is promised to a server.
// SECURITY.md says what the sandbox stops, docs/native.md what was measured, and how well
// a model of yours does.
package native
