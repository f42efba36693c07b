package claudecode

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
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

// parse reads what codex-mcp -trace wrote: lines of a time, < or >, a message.
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

func TestModern(t *testing.T) {
	const (
		version  = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
		meta     = `"_meta":{` + version + `}`
		discover = `t < {"id":"server-discover-probe-1","method":"server/discover","params":{` + meta + `}}
t > {"id":"server-discover-probe-1","result":{"resultType":"complete","supportedVersions":["2026-07-28"]}}
`
		call   = `t < {"id":1,"method":"tools/call","params":{"name":"codex","_meta":{` + version + `,"progressToken":7}}}` + "\n"
		answer = `t > {"id":1,"result":{"resultType":"complete"}}` + "\n"
	)
	for _, tt := range []struct{ name, trace, fails string }{
		{"whole", discover + call + `t > {"method":"notifications/progress","params":{"progressToken":7}}` + "\n" + answer, ""},
		{"a second process takes the same ids", discover + call + answer + discover + call + `t > {"method":"notifications/progress","params":{"progressToken":7}}` + "\n" + answer, ""},
		{"nothing", "", "no answered"},
		{"discovery refused", `t < {"id":1,"method":"server/discover","params":{` + meta + `}}
t > {"id":1,"error":{"code":-32601,"message":"no"}}
`, "refuses"},
		{"fallen back", discover + `t < {"id":1,"method":"initialize"}` + "\n", "fell back"},
		{"another version", discover + `t < {"id":1,"method":"tools/call","params":{}}` + "\n", "another version"},
		{"a request from the server", discover + `t > {"id":1,"method":"elicitation/create"}` + "\n", "a request"},
		{"cancelled by the server", discover + `t > {"method":"notifications/cancelled","params":{"requestId":1}}` + "\n", "cancels"},
		{"progress after the answer", discover + call + answer + `t > {"method":"notifications/progress","params":{"progressToken":7}}` + "\n", "after the answer"},
		{"an event after the answer", discover + call + answer + `t > {"method":"codex/event","params":{"_meta":{"requestId":1}}}` + "\n", "after the answer"},
		{"two answers", discover + call + answer + answer, "no request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, err := parse(tt.trace)
			if err != nil {
				t.Fatal(err)
			}
			err = w.modern()
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%v, want %q", err, tt.fails)
			}
		})
	}
}
