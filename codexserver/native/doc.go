// Package native is the embedded engine: a coding agent in Go that needs no Codex
// installed. It works with any OpenAI-compatible model, runs the tools that the model
// calls, within the approval policy, and keeps conversations in files:
//
//	Turn(input) ──▶ history ──▶ model ──▶ tools, approvals ──┐
//	                   ▲                                     │
//	                   └────────── outputs ◀─────────────────┘
//
// A turn ends with a response that calls no tool. An MCP server on the engine takes a few
// lines; native.Main is the first statement of your main:
//
//	native.Main()
//	e, err := native.New(nil) // $CODEX_HOME/config.toml
//	if err != nil {
//		return err
//	}
//	defer e.Close()
//	return codexserver.New(e, nil).Serve(ctx, jsonrpc.Stdio())
//
// Without a server, pass an [engine.Host] of your own, which receives events and answers
// questions, as the package's example does.
//
// # Configuration
//
// The engine reads Codex's config.toml again for each conversation: model,
// model_providers, profiles, approval_policy, sandbox_mode and other keys. A provider
// needs only a base_url, so Ollama, LM Studio, vLLM and llama.cpp work unchanged:
//
//	model = "qwen3-coder"
//	model_provider = "local"
//	[model_providers.local]
//	base_url = "http://localhost:11434/v1"
//
// [Options].Overrides sets the same keys from Go; the page "Configuration" of the module's
// documentation lists them all.
//
// # Guarantees
//
//   - A command runs only when the approval policy allows it or the host approves
//     it. When a response breaks off, nothing of it runs; the engine requests the
//     whole response again.
//   - Under the sandbox modes read-only and workspace-write a command runs
//     confined, unless the user approved it. Where it cannot be confined, the
//     engine asks the user, or refuses the command under the policy never. Under
//     the policy untrusted a command that is known to be safe runs in the
//     read-only sandbox without network, in every mode.
//   - A turn ends within its [Limits], whatever the model does, and its last event
//     says how it ended.
//   - When a command in the sandbox ends, and when any command is interrupted or
//     times out, all its processes are gone before the turn continues. Processes
//     that an approved command left running end with the conversation, as do MCP
//     servers. All processes end when this process dies, however it dies. This
//     holds on Linux, where the program starts itself again as launcher processes,
//     see [Main]. Elsewhere the engine ends a command's process group. It misses
//     a daemon that left the group, and it cannot clean up after its own death.
//   - A message that is sent to a running turn is in the history before the
//     model's next request, or at the turn's end.
//   - The history keeps what an interrupted turn did. It drops a response of
//     which nothing was done.
//   - Every step is in the conversation's file before the next one begins, so
//     a killed process loses at most the step it was doing.
//
// # Conversations
//
// Conversations are files in $CODEX_HOME/sessions, in Codex's format. [Engine.Resume]
// continues a conversation in the same file. Only one server at a time can run a turn of a
// conversation.
// When the history fills nine tenths of the model's context window, or reaches
// model_auto_compact_token_limit, the user's own words and a summary by the model replace
// it.
//
// # What can go wrong
//
//   - config.toml does not parse, or a value has the wrong type: [New] reports
//     where. A missing provider, profile or key fails the conversation that
//     needs it.
//   - The provider refuses, breaks off or is silent: the engine tries again. Then
//     another provider goes on, see [Failover], or the turn fails with the
//     provider's message, from which keys are removed.
//   - The model calls unknown tools, passes invalid arguments, or never stops
//     calling: it gets an error, and [Limits] end the turn.
//   - The conversation's file cannot be written, such as on a full disk: an event
//     reports it, and the turn fails before anything more runs. The missing lines
//     are written with the next turn.
//   - Another server runs a turn of the conversation: Resume and Turn fail, and
//     their errors name that server's process.
//   - This system has no sandbox: an event reports it, and the engine asks before
//     each command.
//
// # What it does not do
//
// It confines commands only on Linux and macOS. It makes no model requests with a ChatGPT
// sign-in. It calls tools of configured MCP servers without a question.
//
// # Where to go next
//
// Package providertest is a model for tests. Package engine documents what every engine
// promises to a server. Of the module's documentation, the page "Security" says what the
// sandbox stops, and "The native engine" what its tools are.
package native
