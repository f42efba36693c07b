package mcptypes_test

import (
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/mcptypes"
)

// A server decodes a tool call.
func Example() {
	const params = `{"name":"add","arguments":{"a":9007199254740993,"b":1},"_meta":{"progressToken":7}}`
	var call mcptypes.CallToolRequestParams
	if err := mcptypes.Decode([]byte(params), &call); err != nil {
		fmt.Println(err)
		return
	}
	var arguments struct{ A, B int64 }
	if err := json.Unmarshal(call.Arguments, &arguments); err != nil {
		fmt.Println(err)
		return
	}
	result, err := mcptypes.Encode(mcptypes.CallToolResult{
		Content: mcptypes.Text(fmt.Sprint(arguments.A + arguments.B)),
		IsError: new(false),
	})
	fmt.Println(call.Name, call.Meta.ProgressToken)
	fmt.Println(string(result), err)
	// Output:
	// add 7
	// {"content":[{"type":"text","text":"9007199254740994"}],"isError":false} <nil>
}

// A program handles the arms of a union. This version does not have one of them.
func Example_union() {
	const text = `{"content":[
		{"type":"text","text":"the door is open"},
		{"type":"image","data":"/9j/4A==","mimeType":"image/jpeg"},
		{"type":"hologram","url":"https://example.com/door"}
	]}`
	var result mcptypes.CallToolResult
	if err := mcptypes.Decode([]byte(text), &result); err != nil {
		fmt.Println(err)
		return
	}
	for _, block := range result.Content {
		switch block := block.(type) {
		case *mcptypes.TextContent:
			fmt.Println("text:", block.Text)
		case *mcptypes.ImageContent:
			data, err := block.Data.Bytes()
			fmt.Println("image:", len(data), "bytes", err)
		case *mcptypes.Unknown:
			fmt.Println("unknown:", block.Tag)
		}
	}
	// Output:
	// text: the door is open
	// image: 4 bytes <nil>
	// unknown: hologram
}

// The schemas of a tool are raw JSON: written as a text, or made by any library.
func ExampleTool() {
	tool := mcptypes.Tool{
		Name:        "weather",
		Description: new("Tells the weather of a city."),
		InputSchema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	}
	text, err := mcptypes.Encode(tool)
	fmt.Println(string(text[:72]), err)
	// Output: {"description":"Tells the weather of a city.","inputSchema":{"type":"obj <nil>
}

// A tool's structured content is also text, for clients that read only texts.
func ExampleNewOutput() {
	output, err := json.Marshal(map[string]any{"city": "Bern", "degrees": 7.5})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := mcptypes.Encode(mcptypes.NewOutput(output))
	fmt.Println(string(text), err)
	// Output:
	// {"content":[{"type":"text","text":"{\"city\":\"Bern\",\"degrees\":7.5}"}],"structuredContent":{"city":"Bern","degrees":7.5}} <nil>
}
