// Package worker is what codex-mcp-gateway and its workers share: nobody else imports it. A worker is codex-mcp, which
// the gateway starts apart from others for one user. One socket has the requests of the user; everything else goes over
// one connection of package jsonrpc:
//
//	the gateway: [Conn] ── start, with the [Settings]; load; stop ──▶ the worker: [Link]
//	                    ◀── append, put, delete, read, list ──         [Remote], the [Store] of the user
//	                    ◀── record ──                                  lines of the approval log
//
// The gateway does not trust what a worker says: a command may have taken over the worker of its user. Such a worker can
// write what it likes to the store of its own user and, under its user's name, lines in the log, and nothing elsewhere.
//
// The rest of the package keeps what must outlive a machine: conversations, tasks and decisions.
//
// A server writes these as files in its home. That is all without a [Store]. With one,
// [Open] makes a [Mirror] of the home: each write that an answer depends on is in the Store
// before the answer is given, and the files become a copy of it.
//
//	home/sessions/…/rollout-….jsonl ──┐
//	home/codex-mcp/tasks/task-….json ─┼── Mirror ──▶ Store
//	home/codex-mcp/rules.json ────────┘
//
// When the machine dies, Open on another one gets the files from the Store. A server that
// starts there continues the tasks, as after a crash of its process.
//
// # What is in a Store
//
// A name in a Store is the path of the file below the home.
//
//	name                                    is
//	sessions/**, archived_sessions/**       a log: a conversation, with the records of its turns
//	codex-mcp/tasks/task-*.json             a record: a task, also one of a turn in the background
//	codex-mcp/rules.json                    a record: the rules that people accepted
//	codex-mcp/decisions/*.jsonl             a log: each question with its decision; Open does not get it
//	codex-mcp/store                         a record: which home wrote last
//
// These stay on the machine: worktrees, because their content is a
// repository's; the working folders; locks and sockets, which mean processes of the machine;
// the configuration, keys and the sign-in, which the next machine has of its own; copies of
// git's index and texts of codex-show, which are made again.
//
// # Which writes wait
//
// The events of a turn do not wait for the Store. These do, with all lines before them: a
// request to the model; the beginning of a command, a patch or a tool; a question; a decision;
// the end of a turn; each change of a task and of the rules. If such a write fails, what
// depends on it does not happen, and the caller gets the reason.
package worker
