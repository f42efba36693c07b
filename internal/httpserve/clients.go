package httpserve

import (
	"fmt"
	"io"
)

// PrintClients prints the configuration of clients for a URL and a token.
func PrintClients(w io.Writer, url, token string) error {
	_, err := fmt.Fprintf(w, `
Claude Code:

  claude mcp add --transport http codex %[1]s --header "Authorization: Bearer %[2]s"

VS Code, in .vscode/mcp.json:

  {"servers": {"codex": {"type": "http", "url": "%[1]s", "headers": {"Authorization": "Bearer %[2]s"}}}}

Cursor, in ~/.cursor/mcp.json:

  {"mcpServers": {"codex": {"url": "%[1]s", "headers": {"Authorization": "Bearer %[2]s"}}}}
`, url, token)
	return err
}
