package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// wire is what went between Claude Code and the server, of all servers that it
// started, in order.
type wire []message

type message struct {
	fromServer bool
	text       string

	ID     json.RawMessage
	Method string
	Params struct {
		Name           string
		TaskID         string `json:"taskId"`
		ProgressToken  json.RawMessage
		InputResponses map[string]struct{ Action string }
		Meta           struct {
			Version       string          `json:"io.modelcontextprotocol/protocolVersion"`
			ProgressToken json.RawMessage `json:"progressToken"`
			RequestID     json.RawMessage `json:"requestId"`
		} `json:"_meta"`
	}
	Result struct {
		Type          string   `json:"resultType"`
		Version       string   `json:"protocolVersion"`
		Supported     []string `json:"supportedVersions"`
		InputRequests map[string]json.RawMessage
		TaskID        string `json:"taskId"`
		Status        string
	}
	Error *struct {
		Code    int
		Message string
	}
}

// trace reads what codex-mcp -trace wrote: lines of a time, < or >, a message.
func (s *stage) trace() (w wire) {
	s.do(func() error {
		raw, err := os.ReadFile(s.tracePath())
		if err != nil {
			return err
		}
		w, err = parse(string(raw))
		return err
	})
	return w
}

func parse(trace string) (w wire, err error) {
	for l := range strings.Lines(trace) {
		parts := strings.SplitN(l, " ", 3)
		if len(parts) != 3 {
			return nil, fmt.Errorf("trace: %q is not a line", l)
		}
		m := message{fromServer: parts[1] == ">", text: parts[2]}
		if err := json.Unmarshal([]byte(parts[2]), &m); err != nil {
			return nil, fmt.Errorf("trace: %w: %s", err, l)
		}
		w = append(w, m)
	}
	return w, nil
}

// count returns how many messages match.
func (w wire) count(is func(message) bool) (n int) {
	for _, m := range w {
		if is(m) {
			n++
		}
	}
	return n
}

func sent(method string) func(message) bool {
	return func(m message) bool { return !m.fromServer && m.Method == method }
}

// rounds are results that ask.
func rounds(m message) bool { return m.fromServer && m.Result.Type == "input_required" }

// answered are Claude Code's answers with an action, in retries and in updates of tasks.
func (w wire) answered(action string) (n int) {
	for _, m := range w {
		for _, r := range m.Params.InputResponses {
			if r.Action == action {
				n++
			}
		}
	}
	return n
}

// modern checks what holds for every run of the modern era: the client discovered it
// and says so in each request, none is refused, and the server sends no request and
// nothing for a request that it has answered.
func (w wire) modern() error {
	var discovered bool
	type exchange struct{ id, token string }
	var open []exchange
	answered := map[string]string{}
	for _, m := range w {
		id := string(m.ID)
		switch {
		case !m.fromServer && m.Method == "initialize":
			return fmt.Errorf("Claude Code fell back: %s", m.text)
		case !m.fromServer && id != "" && m.Method != "":
			if m.Params.Meta.Version != "2026-07-28" {
				return fmt.Errorf("request of another version: %s", m.text)
			}
			if m.Method == "server/discover" && strings.Contains(id, "probe") {
				open, answered = nil, map[string]string{} // another process
			}
			open = append(open, exchange{id, string(m.Params.Meta.ProgressToken)})
		case m.fromServer && m.Method != "" && id != "":
			return fmt.Errorf("a request from the server: %s", m.text)
		case m.fromServer && m.Error != nil:
			return fmt.Errorf("the server refuses: %s", m.text)
		case m.fromServer && m.Method == "notifications/cancelled":
			return fmt.Errorf("the server cancels: %s", m.text)
		case m.fromServer && m.Method != "":
			token, request := string(m.Params.ProgressToken), string(m.Params.Meta.RequestID)
			for id, itsToken := range answered {
				if token != "" && token == itsToken || request != "" && request == id {
					return fmt.Errorf("after the answer to %s: %s", id, m.text)
				}
			}
		case m.fromServer:
			at := slices.IndexFunc(open, func(e exchange) bool { return e.id == id })
			if at < 0 {
				return fmt.Errorf("an answer to no request: %s", m.text)
			}
			answered[id] = open[at].token
			open = slices.Delete(open, at, at+1)
			discovered = discovered || slices.Contains(m.Result.Supported, "2026-07-28")
		}
	}
	if !discovered {
		return fmt.Errorf("no answered server/discover")
	}
	return nil
}

// legacy checks that the handshake was that of 2025-11-25.
func (w wire) legacy() error {
	for _, m := range w {
		if m.fromServer && m.Result.Version == "2025-11-25" {
			return nil
		}
	}
	return fmt.Errorf("no answered initialize")
}
