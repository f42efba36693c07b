package mcp_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// TestBatch sends batches, which only clients of 2025-03-26 may send. The answer to a question
// comes in one too.
func TestBatch(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		synctest.Test(t, func(t *testing.T) {
			w := &servertest.Worker{}
			ours := servertest.Lines(t, codexserver.New(w.Engine(), nil))
			send := func(line string) { writeAll(t, ours, line) }
			// until returns the next line with a part.
			until := func(part string) string {
				for {
					line, err := ours.Read(t.Context())
					if err != nil {
						t.Fatalf("no %s: %v", part, err)
					}
					if strings.Contains(string(line), part) {
						return string(line)
					}
				}
			}
			ping := `[{"jsonrpc":"2.0","id":7,"method":"ping"}]`
			const refused = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not accepted"}}`
			send(ping)
			if got := until(`"id"`); got != refused {
				t.Errorf("before initialize: %s", got)
			}
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`, version))
			until(`"id":0`)
			send(ping)
			got := until(`"id"`)
			if version != "2025-03-26" {
				if got != refused {
					t.Errorf("%s: %s", version, got)
				}
			} else {
				if got != `[{"jsonrpc":"2.0","id":7,"result":{}}]` {
					t.Errorf("%s", got)
				}
				send(`[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"git"}}},` +
					`{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}}]`)
				until(`"elicitation/create"`)
				send(`[{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{}}},{"jsonrpc":"2.0","id":0,"result":{"action":"cancel"}}]`)
				got := until(`[{"jsonrpc"`)
				for _, part := range []string{`{"jsonrpc":"2.0","id":2,"result":{}}`, `"id":3,"error":{"code":-32602`, `"id":1,"result":`, "git: approved"} {
					if !strings.Contains(got, part) {
						t.Errorf("no %s in %s", part, got)
					}
				}
				if w.Did() != "1 git" {
					t.Error(w.Did())
				}
			}
		})
	}
}
