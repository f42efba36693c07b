package modern_test

import (
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// A server answers a call with a question, and reads the repeated call.
func Example() {
	serve := func(p *modern.CallToolRequestParams) modern.AnyCallToolResult {
		answer, ok := p.InputResponses["q1"].(*modern.ElicitResult)
		switch {
		case !ok:
			return &modern.InputRequiredResult{
				InputRequests: modern.InputRequests{"q1": &modern.ElicitRequest{
					Params: &modern.ElicitRequestFormParams{Message: "Run go test?"},
				}},
				RequestState: new("opaque"),
			}
		case answer.Action == modern.ElicitResultActionAccept:
			return &modern.CallToolResult{Content: modern.Text("ok")}
		}
		return &modern.CallToolResult{Content: modern.Text("declined"), IsError: new(true)}
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
	for _, text := range []string{
		`{` + meta + `,"name":"test"}`,
		`{` + meta + `,"name":"test","requestState":"opaque","inputResponses":{"q1":{"action":"accept"}}}`,
		`{` + meta + `,"name":"test","requestState":"opaque","inputResponses":{"q1":{"action":"decline","Action":"accept"}}}`,
	} {
		var p modern.CallToolRequestParams
		if err := modern.Decode([]byte(text), &p); err != nil {
			fmt.Println(err)
			continue
		}
		result, err := modern.Encode(serve(&p))
		fmt.Println(string(result), err)
	}
	// Output:
	// {"inputRequests":{"q1":{"method":"elicitation/create","params":{"message":"Run go test?","requestedSchema":{"type":"object","properties":{}}}}},"requestState":"opaque","resultType":"input_required"} <nil>
	// {"content":[{"type":"text","text":"ok"}],"resultType":"complete"} <nil>
	// modern: /inputResponses/q1/Action: differs from a member's name only by case
}

// A task has the same members in every status.
func ExampleTask() {
	task := modern.Task{TaskID: "t1", CreatedAt: "2026-11-20T10:00:00Z", LastUpdatedAt: "2026-11-20T10:00:05Z", PollIntervalMs: new(int64(500))}
	for _, d := range []modern.DetailedTask{task.Working(), task.Completed(json.RawMessage(`{"content":[],"resultType":"complete"}`))} {
		text, err := modern.Encode(modern.GetTaskResult{Task: d})
		if err != nil {
			fmt.Println(err)
			return
		}
		var result modern.GetTaskResult
		if err := modern.Decode(text, &result); err != nil {
			fmt.Println(err)
			return
		}
		known, _ := modern.TaskOf(result.Task)
		fmt.Println(known.TaskID, known.Status)
	}
	// Output:
	// t1 working
	// t1 completed
}
