// Package interop tests codex-mcp with what others wrote: the official MCP clients
// on both engines, the MCP conformance suite, also with the packages under codex-mcp,
// and Codex as it was in September 2025 and as it is today.
//
// Each client (clients_test.go) has an adapter in a file client_*_test.go and runs every
// cell of a table (cells_test.go) on both engines, started by the client and over HTTP
// (engines_test.go). Then the test reads what went over the wire (wire_test.go).
// With -whole it runs all cells, and without those that are drawn.
//
// The official SDKs sign in to codex-mcp-gateway by OAuth, with an authorization server
// that runs in the test (oauth_test.go).
//
// Hosts, whose models call the tools, run with a scripted model (hosts_test.go); how each is
// started is in hosts_start_test.go.
//
// Codex, the npm packages and Node come from npm: the gate installs them
// (.ci/run install) and names their folder in CODEX_NPM.
package interop
