// Package workers runs a process for each user. This process, the worker, and its children
// do all work of the user:
//
//	package node ──▶ Pool, in codex-mcp-gateway
//	              │   for each user: a socket for requests, and a connection for the rest (package worker)
//	              ▼
//	            a worker in an enclosure: codex-mcp
//
// Separation does not depend on the content of a request or on a lookup in the server: the
// enclosure of a worker (see [enclosure.Enclosure]) hides the folders, homes and processes of
// other users, and the file with the hashes of the tokens.
//
// The first request of a user starts its worker. The pool ends a worker that was idle for
// http.worker_idle. A worker also ends when the process of the pool ends for any reason,
// because that closes the connection.
//
// The pool does not trust workers: a command that takes over the worker of its user must
// not reach the workers of others. So the pool limits the size or the time of everything
// that a worker sends, and only the pool can connect to a worker.
//
// Another machine may run the worker later: the first process of the enclosure ends when the time of the worker is over
// ([Pool.Extend], [enclosure.Life]).
package workers
