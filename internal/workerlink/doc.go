// Package workerlink connects a worker of codex-mcp-gateway with the gateway. A worker is
// codex-mcp, which the gateway starts apart from others for one user:
//
//	the gateway ──▶ the socket       the requests of the user
//	            ──▶ the control pipe [Settings], then a message a line
//	            ◀── the status pipe  a [Status] a line: what the worker does
//	            ◀──▶ the store       calls of a [store.Store], from [Remote] to [ServeStore]
//	            ◀──▶ the logs        lines, from [Log] to [ServeLog]
//
// The gateway knows what happens in a worker only by its statuses, with which it counts and
// traces. They contain no prompt, command, path or token. The gateway does not trust them: a
// command may have taken over the worker of its user. Such a worker can write what it likes to
// the store of its own user and, under its user's name, lines in the logs, and nothing elsewhere.
package workerlink
