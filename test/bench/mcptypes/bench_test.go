package bench_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	jsonv2 "github.com/go-json-experiment/json"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"
	segmentio "github.com/segmentio/encoding/json"
)

// callParams is a tools/call of a typical size.
var callParams = []byte(`{"name":"codex","arguments":{"prompt":"` +
	strings.Repeat("Fix the failing test in the parser package and explain the cause. ", 8) +
	`","cwd":"/home/user/src/project","model":"default","sandbox":"workspace-write","approval-policy":"on-request",` +
	`"config":{"limits":{"seconds":120,"bytes":1048576},"tags":["a","b","c"],"id":9007199254740993}},` +
	`"_meta":{"progressToken":"token-17"}}`)

// callResult is its result: two blocks and structured content.
var callResult = []byte(`{"content":[{"type":"text","text":"` +
	strings.Repeat(`The test failed because of an off-by-one error.\nIt is fixed now. `, 8) +
	`","annotations":{"audience":["user","assistant"],"priority":0.5}},` +
	`{"type":"resource_link","uri":"file:///home/user/src/project/parser.go","name":"parser.go","mimeType":"text/x-go","size":4096}],` +
	`"structuredContent":{"threadId":"0198c1d2-7f6b-7c3e-9d55-2f1c4a7e8b90","content":"done"},"isError":false}`)

// toolsList is a list of 100 tools with a schema each.
var toolsList = func() []byte {
	var b bytes.Buffer
	b.WriteString(`{"tools":[`)
	for i := range 100 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"tool_%d","title":"Tool %d","description":"Searches the files of folder %d for lines that match a pattern, and returns them with their numbers.",`+
			`"inputSchema":{"type":"object","properties":{`+
			`"pattern":{"type":"string","description":"what to look for"},`+
			`"path":{"type":"string","description":"where to look, the working folder by default"},`+
			`"limit":{"type":"integer","minimum":1,"maximum":1000},`+
			`"mode":{"type":"string","enum":["lines","files","count"]}},`+
			`"required":["pattern"],"additionalProperties":false},`+
			`"annotations":{"readOnlyHint":true,"openWorldHint":false}}`, i, i, i)
	}
	b.WriteString(`],"nextCursor":"page-2"}`)
	return b.Bytes()
}()

// bigText is a result with one text of 1 MiB.
var bigText = []byte(`{"content":[{"type":"text","text":"` +
	strings.Repeat(`a line of output, as commands print it: 42 bytes\n`, 1<<20/49) + `"}]}`)

// codec is one way to read and write.
type codec struct {
	name      string
	new       func() any
	unmarshal func([]byte, any) error
	marshal   func(any) ([]byte, error)
}

func segmentioUnmarshal(b []byte, v any) error {
	d := segmentio.NewDecoder(bytes.NewReader(b)) // as go-sdk's own connection does
	d.DontMatchCaseInsensitiveStructFields()
	return d.Decode(v)
}

func unmarshalV2(b []byte, v any) error { return jsonv2.Unmarshal(b, v) }
func marshalV2(v any) ([]byte, error)   { return jsonv2.Marshal(v) }

// codecs returns the codecs for a message of 2025-06-18, with the types of each library.
func codecs(plain_, mcptypes_, gosdk_, mcpgo_ func() any) []codec {
	return append(others(plain_, gosdk_, mcpgo_),
		codec{"mcptypes", mcptypes_, mcptypes.Decode, mcptypes.Encode},
		codec{"mcptypes-jsonv2", mcptypes_, unmarshalV2, marshalV2},
		codec{"mcptypes-jsonv1", mcptypes_, json.Unmarshal, json.Marshal})
}

// modernCodecs returns the codecs for a message of 2026-07-28.
func modernCodecs(plain_, modern_, gosdk_, mcpgo_ func() any) []codec {
	return append(others(plain_, gosdk_, mcpgo_),
		codec{"modern", modern_, modern.Decode, modern.Encode},
		codec{"modern-jsonv2", modern_, unmarshalV2, marshalV2},
		codec{"modern-jsonv1", modern_, json.Unmarshal, json.Marshal})
}

func others(plain_, gosdk_, mcpgo_ func() any) []codec {
	all := []codec{
		{"plain-jsonv1", plain_, json.Unmarshal, json.Marshal},
		{"plain-jsonv2", plain_, unmarshalV2, marshalV2},
		{"gosdk-jsonv1", gosdk_, json.Unmarshal, json.Marshal},
		{"gosdk-segmentio", gosdk_, segmentioUnmarshal, segmentio.Marshal},
	}
	if mcpgo_ != nil {
		all = append(all, codec{"mcpgo-jsonv1", mcpgo_, json.Unmarshal, json.Marshal})
	}
	return all
}

type message struct {
	name   string
	text   []byte
	codecs []codec
}

var messages = []message{
	{"call", callParams, codecs(
		func() any { return new(plainCall) },
		func() any { return new(mcptypes.CallToolRequestParams) },
		func() any { return new(gosdk.CallToolParamsRaw) },
		func() any { return new(mcpgo.CallToolParams) })},
	{"result", callResult, results},
	{"list", toolsList, codecs(
		func() any { return new(plainList) },
		func() any { return new(mcptypes.ListToolsResult) },
		func() any { return new(gosdk.ListToolsResult) },
		func() any { return new(mcpgo.ListToolsResult) })},
	{"text", bigText, results},
	{"modern-call", modernCall, modernCodecs(
		func() any { return new(plainCall) },
		func() any { return new(modern.CallToolRequestParams) },
		func() any { return new(gosdk.CallToolParamsRaw) },
		func() any { return new(mcpgo.CallToolParams) })},
	{"modern-task", modernTask, modernCodecs(
		func() any { return new(plainTask) },
		func() any { return new(modern.GetTaskResult) },
		func() any { return new(gosdkTask) },
		nil)},
	{"modern-questions", modernQuestions, modernCodecs(
		func() any { return new(plainTask) },
		func() any { return new(modern.GetTaskResult) },
		func() any { return new(gosdkTask) },
		nil)},
	{"modern-list", modernList, modernCodecs(
		func() any { return new(plainList) },
		func() any { return new(modern.ListToolsResult) },
		func() any { return new(gosdk.ListToolsResult) },
		func() any { return new(mcpgo.ListToolsResult) })},
}

var results = codecs(
	func() any { return new(plainResult) },
	func() any { return new(mcptypes.CallToolResult) },
	func() any { return new(gosdk.CallToolResult) },
	func() any { return new(mcpgo.CallToolResult) })

func BenchmarkDecode(b *testing.B) {
	for _, m := range messages {
		for _, c := range m.codecs {
			b.Run(m.name+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(m.text)))
				for b.Loop() {
					if err := c.unmarshal(m.text, c.new()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, m := range messages {
		for _, c := range m.codecs {
			v := c.new()
			if err := c.unmarshal(m.text, v); err != nil {
				b.Fatal(err)
			}
			b.Run(m.name+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(m.text)))
				for b.Loop() {
					if _, err := c.marshal(v); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
