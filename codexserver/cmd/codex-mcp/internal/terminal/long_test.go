//go:build !race

package terminal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestLong sends tasks that are about as long as a message to a server may be, and gets an answer
// that is longer.
func TestLong(t *testing.T) {
	for _, tt := range []struct {
		name   string
		task   string
		answer int // bytes
		status int
		says   string // on standard error
	}{
		{"a task", strings.Repeat("x", terminal.MaxTask-16<<10), 1, terminal.StatusAnswered, ""},
		{"a task when quoted", strings.Repeat(`"`, terminal.MaxTask/2), 0, terminal.StatusFailed, "the task is too long"},
		{"an answer", "x", terminal.MaxTask + 1, terminal.StatusAnswered, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			here, there := jsonrpc.Pipe()
			server := newFakeServer(t, there)
			defer server.end()
			server.result <- json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("y", tt.answer) + `"}]}`)
			var out, stderr lockedBuffer
			code := terminal.Run(t.Context(), here, &terminal.Console{Out: &out, Err: &stderr}, &terminal.Task{Prompt: tt.task}, nil)
			printed := out.b.Len()
			if tt.answer > 0 {
				printed-- // the end of the line
			}
			if code != tt.status || printed != tt.answer || !strings.Contains(stderr.visible(), tt.says) {
				t.Errorf("exit status %d, %d bytes, %.1000s", code, printed, stderr.visible())
			}
		})
	}
}
