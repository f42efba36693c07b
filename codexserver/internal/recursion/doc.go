// Package recursion finds commands that would start a program that runs already:
// the server itself, named as an MCP server in the configuration that it reads.
// Codex's config.toml does so in most set-ups, since it is where people try the
// server out.
package recursion
