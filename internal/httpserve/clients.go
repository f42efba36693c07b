package httpserve

import (
	"fmt"
	"io"
)

// PrintClients prints the configuration of clients for a URL and a token. The file of VS Code lies in
// the project, where others read it, so it has no token: VS Code asks for it once, and keeps it.
func PrintClients(w io.Writer, url, token string) error {
	_, err := fmt.Fprintf(w, `
Claude Code:

  claude mcp add --transport http codex %[1]s --header "Authorization: Bearer %[2]s"

VS Code, in .vscode/mcp.json. It asks for the token:

  {"inputs": [{"type": "promptString", "id": "codex-mcp-token", "description": "the token of codex-mcp", "password": true}],
   "servers": {"codex": {"type": "http", "url": "%[1]s", "headers": {"Authorization": "Bearer ${input:codex-mcp-token}"}}}}

Cursor, in ~/.cursor/mcp.json:

  {"mcpServers": {"codex": {"url": "%[1]s", "headers": {"Authorization": "Bearer %[2]s"}}}}
`, url, token)
	return err
}
