// Package workers runs a process for each user of codex-mcp http, where the configuration
// names several. All work of a user is done by that process and its children:
//
//	clients ──▶ Pool, in the process that the operator started: who may
//	              │   a socket for each user, the order, and its end
//	              ▼
//	            a worker, in an enclosure: Join, and then MCP for one user
//
// Separation does not depend on what a request says or on what the server looks up: a
// worker's enclosure (see [sandbox.Enclosure]) has no folder, home or process of another
// user, and not the file with the hashes of the tokens.
//
// A worker starts with the first request of its user, and ends when it has been idle for
// http.worker_idle. It also ends with the pool's process, in whatever way that ends: the
// pipe with its order closes.
//
// A pool trusts no worker: what a command does to the worker of its user must not reach
// the workers of others. So all that a worker sends is bounded, in size or in time, and
// only the pool can connect to a worker.
package workers
