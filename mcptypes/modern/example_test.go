package modern_test

import (
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
