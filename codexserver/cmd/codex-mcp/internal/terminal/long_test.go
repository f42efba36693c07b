//go:build !race

package terminal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestLong sends a task that is as long as one may be, of bytes that take six in a message, and gets an answer that is longer.
func TestLong(t *testing.T) {
	here, there := jsonrpc.Pipe()
	server := newFakeServer(t, there)
	defer server.end()
	const answer = 64<<20 + 1
	server.result <- json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("y", answer) + `"}]}`)
	var out, stderr lockedBuffer
	task := &terminal.Task{Prompt: strings.Repeat("\x01", terminal.MaxTask)}
	code := terminal.Run(t.Context(), here, &terminal.Console{Out: &out, Err: &stderr}, task, nil)
	if code != terminal.StatusAnswered || out.b.Len() != answer+len("\n") {
		t.Errorf("exit status %d, %d bytes, %.1000s", code, out.b.Len(), stderr.visible())
	}
}
