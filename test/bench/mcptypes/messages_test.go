package bench_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// modernCall is a tools/call that is repeated with the answer to a question.
var modernCall = []byte(`{"_meta":{"progressToken":"token-17","io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"agent","version":"1.2.3"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}},` +
	`"name":"codex","arguments":{"prompt":"` +
	strings.Repeat("Fix the failing test in the parser package and explain the cause. ", 8) +
	`","cwd":"/home/user/src/project","sandbox":"workspace-write","approval-policy":"on-request"},` +
	`"requestState":"` + strings.Repeat("c2VhbGVk", 24) + `",` +
	`"inputResponses":{"q1":{"action":"accept","content":{"decision":"approved"}}}}`)

// modernTask is the result of tasks/get for a completed task.
var modernTask = []byte(`{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"codex-mcp","title":"Codex","version":"1.0.0"}},` +
	`"resultType":"complete","taskId":"0198c1d2-7f6b-7c3e-9d55-2f1c4a7e8b90.k3v9q1z8x7c6v5b4n3m2l1k0","status":"completed",` +
	`"statusMessage":"done in 2m10s","createdAt":"2026-11-20T10:00:00Z","lastUpdatedAt":"2026-11-20T10:02:10Z","ttlMs":86400000,` +
	`"pollIntervalMs":2000,"result":` + string(callResult) + `}`)

// modernQuestions is the result of tasks/get for a task that waits for two answers.
var modernQuestions = []byte(`{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"codex-mcp","title":"Codex","version":"1.0.0"}},` +
	`"resultType":"complete","taskId":"0198c1d2-7f6b-7c3e-9d55-2f1c4a7e8b90.k3v9q1z8x7c6v5b4n3m2l1k0","status":"input_required",` +
	`"createdAt":"2026-11-20T10:00:00Z","lastUpdatedAt":"2026-11-20T10:02:10Z","ttlMs":86400000,"pollIntervalMs":2000,` +
	`"inputRequests":{"q1":` + question + `,"q2":` + question + `}}`)

const question = `{"method":"elicitation/create","params":{"mode":"form","message":"Codex wants to run:\n\n    go test ./...\n\nin /home/user/src/project",` +
	`"requestedSchema":{"type":"object","properties":{` +
	`"decision":{"type":"string","title":"Decision","description":"what to do","oneOf":[{"const":"approved","title":"Run it"},` +
	`{"const":"approved_for_session","title":"Run it, and do not ask again"},{"const":"denied","title":"Do not run it"}]},` +
	`"feedback":{"type":"string","title":"Feedback","description":"what the model should do instead","maxLength":2000},` +
	`"remember":{"type":"boolean","title":"Remember","default":false}},"required":["decision"]}}}`

// modernList is the list of 100 tools.
var modernList = bytes.Replace(toolsList, []byte(`"nextCursor"`), []byte(`"resultType":"complete","ttlMs":3600000,"cacheScope":"private","nextCursor"`), 1)

// gosdkTask is a task in the style of go-sdk, which lacks tasks.
type gosdkTask struct {
	gosdk.Meta     `json:"_meta,omitempty"`
	ResultType     string                `json:"resultType"`
	TaskID         string                `json:"taskId"`
	Status         string                `json:"status"`
	StatusMessage  string                `json:"statusMessage,omitempty"`
	CreatedAt      string                `json:"createdAt"`
	LastUpdatedAt  string                `json:"lastUpdatedAt"`
	TTLMs          *int64                `json:"ttlMs"`
	PollIntervalMs int64                 `json:"pollIntervalMs,omitempty"`
	InputRequests  gosdk.InputRequestMap `json:"inputRequests,omitempty"`
	Result         json.RawMessage       `json:"result,omitempty"`
	Error          json.RawMessage       `json:"error,omitempty"`
}

// TestMessages checks that every codec reads every message, and that mcptypes and the plain
// structs write the same message.
func TestMessages(t *testing.T) {
	for _, m := range messages {
		for _, c := range m.codecs {
			v := c.new()
			if err := c.unmarshal(m.text, v); err != nil {
				t.Errorf("%s by %s: %v", m.name, c.name, err)
			}
			text, err := c.marshal(v)
			if err != nil {
				t.Errorf("%s by %s: %v", m.name, c.name, err)
			}
			if whole := strings.HasPrefix(c.name, "mcptypes") || strings.HasPrefix(c.name, "modern") || strings.HasPrefix(c.name, "plain"); whole && !bytes.Equal(canonical(t, text), canonical(t, m.text)) {
				t.Errorf("%s by %s became %.2000s", m.name, c.name, text)
			}
		}
	}
	for _, text := range [][]byte{modernTask, modernQuestions} {
		var task modern.GetTaskResult
		if err := modern.DecodeStrict(text, &task); err != nil {
			t.Error(err)
		}
	}
}

func canonical(t *testing.T, text []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
