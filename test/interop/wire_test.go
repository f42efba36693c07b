package interop

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// message is a line of a trace.
type message struct {
	sent   bool // by the server
	at     time.Time
	raw    string
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Meta struct {
			Version       string          `json:"io.modelcontextprotocol/protocolVersion"`
			ProgressToken json.RawMessage `json:"progressToken"`
			RequestID     json.RawMessage `json:"requestId"`
		} `json:"_meta"`
		ProgressToken json.RawMessage `json:"progressToken"`
		Progress      float64         `json:"progress"`
	} `json:"params"`
	Result struct {
		Version       string                     `json:"protocolVersion"`
		Type          string                     `json:"resultType"`
		InputRequests map[string]json.RawMessage `json:"inputRequests"`
	} `json:"result"`
}

// readTrace reads what the server wrote with -trace, perhaps by several processes.
func readTrace(t *testing.T, trace string) (messages []message) {
	t.Helper()
	for line := range strings.Lines(trace) {
		stamp, rest, _ := strings.Cut(line, " ")
		direction, raw, _ := strings.Cut(strings.TrimSpace(rest), " ")
		at, err := time.Parse(time.RFC3339, stamp)
		if err != nil {
			t.Fatalf("trace: %v in %s", err, line)
		}
		m := message{sent: direction == ">", at: at, raw: raw}
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			t.Fatalf("trace: %v in %s", err, line)
		}
		messages = append(messages, m)
	}
	return messages
}

// negotiated returns the version of MCP that the client and the server speak.
func negotiated(messages []message) string {
	version := "none"
	for _, m := range messages {
		switch {
		case m.sent && m.Result.Version != "":
			return m.Result.Version // of a handshake
		case !m.sent && m.Params.Meta.Version != "" && m.Method != "server/discover":
			version = m.Params.Meta.Version
		}
	}
	return version
}

// broken returns what a server of MCP 2026-07-28 must not send: a request, a second
// answer, or anything for a request that is answered.
func broken(messages []message) (faults []string) {
	fault := func(what string, m message) { faults = append(faults, what+": "+m.raw) }
	open := map[string]bool{}     // requests of the client, by their id
	token := map[string]string{}  // of requests, by their id
	count := map[string]float64{} // the last progress, by its token
	for _, m := range messages {
		id := string(m.ID)
		switch {
		case !m.sent && m.Method != "" && id != "":
			if m.Method == "server/discover" {
				clear(count) // perhaps of another process
			}
			open[id] = true
			token[id] = string(m.Params.Meta.ProgressToken)
		case !m.sent && m.Method == "":
			fault("the client answers, where nothing can have been asked", m)
		case !m.sent:
		case m.Method != "" && id != "":
			fault("a request from the server", m)
		case m.Method == "" && !open[id]:
			fault("an answer to no open request", m)
		case m.Method == "":
			delete(open, id)
		case m.Method == "notifications/cancelled":
			fault("the server cancels", m)
		case m.Method == "notifications/progress":
			at := string(m.Params.ProgressToken)
			of := slices.ContainsFunc(slices.Collect(maps.Keys(open)), func(id string) bool { return token[id] == at })
			if !of {
				fault("progress of no open request", m)
			} else if m.Params.Progress <= count[at] {
				fault(fmt.Sprintf("progress after %v", count[at]), m)
			}
			count[at] = m.Params.Progress
		case m.Params.Meta.RequestID != nil && !open[string(m.Params.Meta.RequestID)]:
			fault("a notification of no open request", m)
		}
	}
	return faults
}

// TestBroken checks that broken finds faults.
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
			if got := broken(readTrace(t, trace.String())); len(got) != tt.want {
				t.Errorf("%d faults, want %d: %q", len(got), tt.want, got)
			}
		})
	}
}
