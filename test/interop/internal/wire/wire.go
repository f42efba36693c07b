// Package wire reads what codex-mcp wrote with --trace, and checks it.
package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Message is a line of a trace.
type Message struct {
	Sent bool      `json:"-"` // by the server
	At   time.Time `json:"-"`
	Raw  string    `json:"-"`

	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Meta struct {
			Version       string          `json:"io.modelcontextprotocol/protocolVersion"`
			ProgressToken json.RawMessage `json:"progressToken"`
			RequestID     json.RawMessage `json:"requestId"`
		} `json:"_meta"`
		ProgressToken  json.RawMessage                    `json:"progressToken"`
		Progress       float64                            `json:"progress"`
		InputResponses map[string]struct{ Action string } `json:"inputResponses"`
	} `json:"params"`
	Result struct {
		Version       string                     `json:"protocolVersion"`
		Type          string                     `json:"resultType"`
		InputRequests map[string]json.RawMessage `json:"inputRequests"`
	} `json:"result"`
	Error json.RawMessage `json:"error"`
}

// Read reads a trace, perhaps of several processes.
func Read(trace string) (messages []Message, err error) {
	for line := range strings.Lines(trace) {
		stamp, rest, _ := strings.Cut(line, " ")
		direction, raw, _ := strings.Cut(strings.TrimSpace(rest), " ")
		at, err := time.Parse(time.RFC3339, stamp)
		if err != nil {
			return nil, fmt.Errorf("trace: %w in %s", err, line)
		}
		m := Message{Sent: direction == ">", At: at, Raw: raw}
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			return nil, fmt.Errorf("trace: %w in %s", err, line)
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// Negotiated returns the version of MCP that the client and the server speak.
func Negotiated(messages []Message) string {
	version := "none"
	for _, m := range messages {
		switch {
		case m.Sent && m.Result.Version != "":
			return m.Result.Version // of a handshake
		case !m.Sent && m.Params.Meta.Version != "" && m.Method != "server/discover":
			version = m.Params.Meta.Version
		}
	}
	return version
}

// Broken returns what a server of MCP 2026-07-28 must not send: a request, a second
// answer, or anything for a request that is answered.
func Broken(messages []Message) (faults []string) {
	fault := func(what string, m Message) { faults = append(faults, what+": "+m.Raw) }
	open := map[string]bool{}     // requests of the client, by their id
	token := map[string]string{}  // of requests, by their id
	count := map[string]float64{} // the last progress, by its token
	for _, m := range messages {
		id := string(m.ID)
		switch {
		case !m.Sent && m.Method != "" && id != "":
			if m.Method == "server/discover" {
				clear(count) // perhaps of another process
			}
			open[id] = true
			token[id] = string(m.Params.Meta.ProgressToken)
		case !m.Sent && m.Method == "":
			fault("the client answers, where nothing can have been asked", m)
		case !m.Sent:
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
