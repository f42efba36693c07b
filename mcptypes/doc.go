// Package mcptypes holds the types of the Model Context Protocol, version 2025-06-18,
// generated from its schema: strict where safety needs it, open where the protocol is
// open.
//
//	JSON ── Decode ──▶ values of these types ── Encode ──▶ JSON
//	                        ▲        │
//	                        │        ▼
//	   ToolsCall.Handle, …: a server, a client: ToolsCall.Call, …
//
// The package has no connections, so it fits a program with any of them. The params of a
// tool's call, read, and an answer, written:
//
//	var call mcptypes.CallToolRequestParams
//	if err := mcptypes.Decode(params, &call); err != nil {
//		return err // with the place: mcptypes: /name: required, but absent
//	}
//	answer, err := mcptypes.Encode(mcptypes.CallToolResult{Content: mcptypes.Text("done")})
//
// There are many names. Begin with [Decode] and [Encode], then with the method that you
// call or serve, such as [ToolsCall] or [ElicitationCreate]: its params and its result
// lead to the rest.
//
// # Messages
//
// Each definition of the schema is a Go type of the same name, letter for letter; the
// params of a message are called after it, as [CallToolRequestParams]. A constant of the
// schema is not a field: the codec writes it and checks it. Optional members are
// pointers, or slices, maps and raw JSON that are nil when absent; with new(true) one
// writes a pointer in place. An empty list, map or object is not an absent one.
//
//	result := mcptypes.CallToolResult{
//		Content: mcptypes.Text("done"),
//		IsError: new(false),
//	}
//
// A union is an interface that only its arms satisfy, by pointer:
//
//	for _, block := range result.Content {
//		switch block := block.(type) {
//		case *mcptypes.TextContent:
//			fmt.Println(block.Text)
//		case *mcptypes.Unknown: // a kind that a later version has added
//			log.Println("skipped", block.Tag)
//		}
//	}
//
// [RequestId] and [ProgressToken] are comparable and keep 1, "1" and 2^53+1 apart.
// Free-form values, such as a tool's arguments and schemas, are raw JSON, so that no
// number is rounded and no order lost. Members that the schema does not know are in Extra
// and are written back.
//
// # Decoding and encoding
//
// [Decode] and [Encode] are the direct ways. The types also implement the interfaces of
// encoding/json and of github.com/go-json-experiment/json, and behave the same through
// either, whatever the options: names match by case, and duplicate members, invalid
// UTF-8, missing members, wrong types, constants and enum values are errors. A
// [DecodeError] has the JSON pointer to the place. It matters for approvals:
// {"action":"decline","Action":"accept"} reads as decline here, and as accept where names
// match in any case.
//
// Decode takes two liberties with what the schema says, and [DecodeStrict] takes none:
// null in an optional member reads as absent, and an arm that a union does not know
// becomes [*Unknown]. All other differences are deliberate; they are listed with their
// reasons in schema/2025-06-18/deviations.json, which the tests read.
//
// Interfaces have no methods to decode by, so a union by itself is decoded by Decode
// alone: Decode(b, &block) with a variable of type [ContentBlock].
//
// Encode refuses what the schema would: an absent id, a nil union in a required place,
// invalid raw JSON, a known name in Extra. Its output is one line and the same for the
// same value.
//
// # Methods
//
// Each request and notification is a value that pairs its name with its types. Anything
// with the method of [Caller], such as the peer of package jsonrpc, can call it, and
// anything with that of [Registrar], such as its mux, can serve it; [Methods] says who
// sends what.
//
//	result, err := mcptypes.ToolsCall.Call(ctx, peer, &mcptypes.CallToolRequestParams{Name: "codex"})
//
//	mcptypes.ToolsCall.Handle(mux, func(ctx context.Context, p *mcptypes.CallToolRequestParams) (*mcptypes.CallToolResult, error) {
//		return &mcptypes.CallToolResult{Content: mcptypes.Text("done")}, nil
//	})
//
// # Concurrency
//
// The types are plain data: safe to read from many goroutines, not to change. Decoded
// values share no memory with the text.
//
// # What it does not do
//
// It sends nothing, and does not keep the order of a session's messages. It does not
// check that a URI is one, that base64 can be decoded, or that a tool's arguments fit its
// schema. Other versions of the protocol are not read into these types, though what they
// add travels in Extra; package modern has those of 2026-07-28.
//
// # Speed
//
// Microseconds and allocations for one message: call is the params of a tools/call of 0.8
// kB, list a tools/list of 100 tools and 57 kB, text a result with one text of 1 MiB. The
// rows are Decode and Encode of this package, then the types of go-sdk v1.8.0 by
// encoding/json and by the decoder of its own connection, of mcp-go v1.2.1, and of
// go-jsonschema v0.24.1 made from the same schema. One run of the benchmarks in the
// nested module bench, the best of 40, on two shared cores of an AMD EPYC with Go 1.26.8:
//
//	                 decode:                          encode:
//	                    call        list         text    call       list      text
//	mcptypes           1.3/7    215/1011       2591/9   1.5/1    116/101     530/5
//	go-sdk            6.1/16    568/6619  14695/21447   3.9/4   385/4201  12072/15
//	its connection    9.4/12    476/6313  12338/21479   1.9/1    229/201  11396/14
//	mcp-go           18.3/70  1514/11919     36069/31   8.2/9  1224/7203   5921/29
//	go-jsonschema   20.5/121  3347/32948     18661/43  2.7/26   316/2701    1089/6
//
// Both JSON packages call the same code; json/v2 adds little to decoding and reads again
// what is encoded, and encoding/json reads the text a second time both ways.
//
// # Where to go next
//
// The examples have unions, a question to a person, and members that the schema does not
// know. Package jsonrpc is a peer to send the messages with, package elicit asks for
// approvals with them.
package mcptypes

//go:generate go run ../gen -schema ../schema/2025-06-18/schema.json -out .
