// Package interop tries what others wrote: the official MCP clients with
// codex-mcp on both engines, the MCP conformance suite with codex-mcp and with the
// packages under it, and Codex as it was in September 2025 and as it is today.
//
// Each client (clients_test.go) meets both engines in every cell of a table
// (cells_test.go), by an adapter in a file client_*_test.go, and what went over
// the wire is read (wire_test.go). The tables of docs/interop.md are what the
// run saw, -update rewrites them.
//
// The official Go SDK finds its way through OAuth to codex-mcp http and an
// authorization server that runs in the test (oauth_test.go).
//
// Codex, the npm packages and Node come from npm: the gate installs them
// (.ci/run install) and names their folder in CODEX_NPM.
package interop
