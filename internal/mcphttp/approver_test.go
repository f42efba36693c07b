package mcphttp_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/elicit"
)

// decideToday waits for a question of another principal with a request of 2026-07-28, and
// answers it. It returns the question and the result.
func decideToday(s *site, h headers, answer string) (question, result string) {
	const wait = `"name":"codex-wait","arguments":{}`
	body, own := modern("7", "tools/call", `{"elicitation":{}}`, wait)
	own["Mcp-Name"] = "codex-wait"
	maps.Copy(own, h)
	question = s.post(body, own).body
	_, rest, _ := strings.Cut(question, `{`)
	if at := strings.Index(question, "data: "); at >= 0 {
		_, rest, _ = strings.Cut(question[at:], `{`)
	}
	var m struct {
		Result struct{ RequestState string }
	}
	if err := json.NewDecoder(strings.NewReader("{" + rest)).Decode(&m); err != nil || m.Result.RequestState == "" {
		s.t.Errorf("no question: %v, %s", err, question)
		return question, ""
	}
	body, _ = modern("8", "tools/call", `{"elicitation":{}}`, `"requestState":"`+m.Result.RequestState+`","inputResponses":{"q1":`+answer+`},`+wait)
	return question, s.post(body, own).body
}

// decideBefore does what decideToday does, in a session.
func decideBefore(s *site, h headers, answer string) (question, result string) {
	session := s.initialize(h)
	v := s.stream(http.MethodPost, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"codex-wait","arguments":{}}}`, session)
	question = v.until(`"elicitation/create"`)
	var m struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(question), &m); err != nil {
		s.t.Fatal(err)
	}
	if got := s.post(`{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+answer+`}`, session); got.status != http.StatusAccepted {
		s.t.Errorf("the answer: %+v", got)
	}
	return question, v.until(`"result"`)
}

// TestApprover lets bob answer the questions of ann's turns, because ann may not approve. It
// combines the eras of both.
func TestApprover(t *testing.T) {
	const accept, decline = `{"action":"accept","content":{"decision":"approved"}}`, `{"action":"decline"}`
	ann := headers{"Authorization": "Bearer ann codex:run codex:read"}
	bob := headers{"Authorization": "Bearer bob codex:approve codex:read"}
	for asks, start := range map[string]func(s *site) string{
		"today": func(s *site) string {
			body, h := modern("1", "tools/call", `{"elicitation":{}}`, call)
			maps.Copy(h, ann)
			return s.post(body, h).body
		},
		"before": func(s *site) string { return s.post(codex("1", "hello", ""), s.initialize(ann)).body },
	} {
		for decides, decide := range map[string]func(*site, headers, string) (string, string){"today": decideToday, "before": decideBefore} {
			for answer, want := range map[string]elicit.Decision{accept: elicit.Approved, decline: elicit.Denied} {
				t.Run(asks+" "+decides+" "+string(want), func(t *testing.T) {
					var record bytes.Buffer
					s := open(t, asking, &codexserver.Options{Approver: "bob", Record: &record}, withScopes)
					ended := make(chan string, 1)
					go func() { ended <- start(s) }()
					question, result := decide(s, bob, answer)
					if !strings.Contains(question, "git init") {
						t.Errorf("the question: %s", question)
					}
					if !strings.Contains(result, string(want)+": `git init`") {
						t.Errorf("bob receives: %s", result)
					}
					if got := wait(t, ended); !strings.Contains(got, "decided "+string(want)) {
						t.Errorf("ann receives: %s", got)
					}
					for _, part := range []string{`"principal":"ann"`, `"by":"approver"`, `"approver":"bob"`, `"decision":"` + string(want) + `"`} {
						if !strings.Contains(record.String(), part) {
							t.Errorf("the record lacks %s: %s", part, record.String())
						}
					}
				})
			}
		}
	}
}

// TestNoApprover checks that questions of a client that may not approve are denied at once
// if there is no approver, or if the approver may not approve either.
func TestNoApprover(t *testing.T) {
	ann := headers{"Authorization": "Bearer ann codex:run codex:read"}
	s := open(t, asking, nil, withScopes)
	body, h := modern("1", "tools/call", `{"elicitation":{}}`, call)
	maps.Copy(h, ann)
	if got := s.post(body, h); !strings.Contains(got.body, "decided denied") {
		t.Errorf("without an approver: %s", got.body)
	}
	s = open(t, asking, &codexserver.Options{Approver: "bob"}, withScopes)
	background, h := modern("1", "tools/call", `{"elicitation":{}}`, `"name":"codex","arguments":{"prompt":"hello","background":true}`)
	maps.Copy(h, ann)
	thread := threadOf(t, s.post(background, h).body)
	for _, more := range []string{"", `,"threadIds":["` + thread + `"]`} {
		wait, h := modern("2", "tools/call", `{"elicitation":{}}`, `"name":"codex-wait","arguments":{"seconds":1`+more+`}`)
		h["Mcp-Name"], h["Authorization"] = "codex-wait", "Bearer bob codex:run codex:read"
		if got := s.post(wait, h); strings.Contains(got.body, "input_required") || strings.Contains(got.body, "git init") {
			t.Errorf("%s: %s", more, got.body)
		}
	}
}
