package elicit_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/elicit"
)

// A server asks whether a command may run. The client here is a function; a *jsonrpc.Peer in its place asks a real one.
func Example() {
	client := elicit.CallFunc(func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
		var question struct{ Message string }
		if err := json.Unmarshal(params, &question); err != nil {
			return nil, err
		}
		fmt.Println(question.Message)
		return json.RawMessage(`{"action":"decline","content":{"feedback":"use the makefile"}}`), nil
	})
	asker := elicit.NewAsker(client, elicit.Client{Capabilities: json.RawMessage(`{"elicitation":{}}`), ProtocolVersion: "2025-06-18"}, nil)

	command := elicit.ShowCommand([]string{"bash", "-lc", "go build ./... > log"})
	out := asker.Ask(context.Background(), &elicit.Question{Message: "Allow Robot to run `" + command + "`?"})
	fmt.Println(out.Decision, "-", out.ForModel())
	// Output:
	// Allow Robot to run `bash -lc 'go build ./... > log'`?
	// denied - declined: use the makefile
}

// A server of MCP 2026-07-28 asks in the result of a call, and reads the answer when the
// client repeats the call. requestState connects the two.
func ExampleQuestion_InputRequest() {
	meta := json.RawMessage(`{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}`)
	question := &elicit.Question{Message: "Allow Robot to run `git init`?"}
	if client := elicit.RequestClient(meta); client.CanAsk() {
		request, err := question.InputRequest(client, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf(`{"resultType":"input_required","inputRequests":{"q1":%s},"requestState":"…"}`+"\n", request)
	}

	out := question.ReadInputResponse(json.RawMessage(`{"action":"accept","content":{}}`), nil)
	fmt.Println(out.Decision)
	out = question.ReadInputResponse(json.RawMessage(`{"decision":"approved"}`), nil)
	fmt.Println(out.Decision, "-", out.ForModel())
	// Output:
	// {"resultType":"input_required","inputRequests":{"q1":{"method":"elicitation/create","params":{"message":"Allow Robot to run `git init`?","mode":"form","requestedSchema":{"type":"object","properties":{}}}}},"requestState":"…"}
	// approved
	// denied - the approval answer was not understood
}

// A program can show a command in a log or on a terminal without hidden characters.
func ExampleShowCommand() {
	fmt.Println(elicit.ShowCommand([]string{"git", "commit", "-m", "two words"}))
	fmt.Println(elicit.ShowCommand([]string{"echo", "a\x1b[2Kb"}))
	fmt.Println(elicit.ShowText("progress\rdone\n\u202eend"))
	fmt.Println(elicit.ShowCode("{\"path\":\"a`b\"}"))
	// Output:
	// git commit -m 'two words'
	// echo $'a\x1b[2Kb'
	// progress\rdone
	// \u{202e}end
	// ``{"path":"a`b"}`` true
}
