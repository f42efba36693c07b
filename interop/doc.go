// Package interop tries codex-mcp against the real thing: Codex as it was in
// September 2025. The binaries come from npm; the gate installs them and names
// their folder in CODEX_NPM.
package interop
