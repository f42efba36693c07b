package wire_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/test/interop/internal/wire"
)

// TestBroken checks that Broken finds faults.
func TestBroken(t *testing.T) {
	const call = `< {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":7}}}`
	for _, tt := range []struct {
		name  string
		lines []string
		want  int
	}{
		{"whole", []string{call, `> {"method":"notifications/progress","params":{"progressToken":7,"progress":1}}`, `> {"id":1,"result":{}}`}, 0},
		{"an id again in another process", []string{call, `> {"id":1,"result":{}}`, call, `> {"id":1,"result":{}}`}, 0},
		{"request", []string{call, `> {"id":1,"method":"elicitation/create"}`}, 1},
		{"answer of the client", []string{`< {"id":1,"result":{}}`}, 1},
		{"two answers", []string{call, `> {"id":1,"result":{}}`, `> {"id":1,"result":{}}`}, 1},
		{"progress after the answer", []string{call, `> {"id":1,"result":{}}`, `> {"method":"notifications/progress","params":{"progressToken":7,"progress":1}}`}, 1},
		{"progress that stands", []string{call, `> {"method":"notifications/progress","params":{"progressToken":7,"progress":0}}`}, 1},
		{"progress that falls in the next round", []string{
			call, `> {"method":"notifications/progress","params":{"progressToken":7,"progress":2}}`, `> {"id":1,"result":{}}`,
			strings.Replace(call, `"id":1`, `"id":2`, 1), `> {"method":"notifications/progress","params":{"progressToken":7,"progress":1}}`,
		}, 1},
		{"event after the answer", []string{call, `> {"id":1,"result":{}}`, `> {"method":"codex/event","params":{"_meta":{"requestId":1}}}`}, 1},
		{"cancel", []string{call, `> {"method":"notifications/cancelled","params":{"requestId":1}}`}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var trace strings.Builder
			for _, line := range tt.lines {
				trace.WriteString("2026-01-02T15:04:05.000Z " + line + "\n")
			}
			messages, err := wire.Read(trace.String())
			if err != nil {
				t.Fatal(err)
			}
			if got := wire.Broken(messages); len(got) != tt.want {
				t.Errorf("%d faults, want %d: %q", len(got), tt.want, got)
			}
		})
	}
}
