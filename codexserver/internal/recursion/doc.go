// Package recursion recognizes commands that would start the running program again.
// The server needs it because the configuration that it reads may list the server
// itself as an MCP server. Most users' config.toml does: they add the server there to
// try it out.
package recursion
