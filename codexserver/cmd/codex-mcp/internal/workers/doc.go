// Package workers runs a process for each user of codex-mcp http, where the configuration
// names several. All that a user's work does, it does in that process and below it:
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
// A worker starts with the first request of its user. It ends with the pool's process in
// whatever way that ends: the pipe with its order closes.
package workers
