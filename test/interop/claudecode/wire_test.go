//go:build claudecode

package claudecode

import (
	"fmt"

	"github.com/codexmcp/codexmcp/test/interop/internal/wire"
)

// modern checks what holds for every run of the modern era: the client says the version in each request, none is
// refused, and the server sends what it may.
func modern(messages []wire.Message) error {
	const version = "2026-07-28"
	for _, m := range messages {
		switch {
		case m.Sent && m.Error != nil:
			return fmt.Errorf("the server refuses: %s", m.Raw)
		case !m.Sent && m.ID != nil && m.Method != "" && m.Params.Meta.Version != version:
			return fmt.Errorf("request of another version: %s", m.Raw)
		}
	}
	if faults := wire.Broken(messages); len(faults) > 0 {
		return fmt.Errorf("the server: %q", faults)
	}
	if got := wire.Negotiated(messages); got != version {
		return fmt.Errorf("they speak %s", got)
	}
	return nil
}

// legacy checks that the handshake was that of 2025-11-25.
func legacy(messages []wire.Message) error {
	if got := wire.Negotiated(messages); got != "2025-11-25" {
		return fmt.Errorf("they speak %s", got)
	}
	return nil
}

// count returns how many messages are of a kind: "questions" are requests of the server,
// "rounds" results that ask, "tasks" results that begin one. "accept", "decline" and "cancel"
// are answers, in retries and in updates of tasks. Others are methods that the client sent.
func count(messages []wire.Message, kind string) (n int) {
	for _, m := range messages {
		is := false
		switch kind {
		case "questions":
			is = m.Sent && m.Method == "elicitation/create"
		case "rounds":
			is = m.Sent && m.Result.Type == "input_required"
		case "tasks":
			is = m.Sent && m.Result.Type == "task"
		case "accept", "decline", "cancel":
			for _, r := range m.Params.InputResponses {
				if r.Action == kind {
					n++
				}
			}
		default:
			is = !m.Sent && m.Method == kind
		}
		if is {
			n++
		}
	}
	return n
}
