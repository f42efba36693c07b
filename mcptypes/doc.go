// Package mcptypes holds the types of the Model Context Protocol, version 2025-06-18,
// generated from its schema. Decoding is strict where safety needs it, and keeps what the
// protocol leaves open.
//
//	JSON ── Decode ──▶ values of these types ── Encode ──▶ JSON
//	                        ▲        │
//	                        │        ▼
//	   ToolsCall.Handle, …: a server, a client: ToolsCall.Call, …
//
// The package opens no connections, so a program can use it with any. This reads the
// params of a tool call and writes an answer:
//
//	var call mcptypes.CallToolRequestParams
//	if err := mcptypes.Decode(params, &call); err != nil {
//		return err // such as: mcptypes: /name: required, but absent
//	}
//	answer, err := mcptypes.Encode(mcptypes.CallToolResult{Content: mcptypes.Text("done")})
//
// The package has many names. Begin with [Decode] and [Encode]. Continue with the method
// that you call or serve, such as [ToolsCall] or [ElicitationCreate]; its params and its
// result lead to the other types.
//
// # Messages
//
// Each definition of the schema is a Go type with the same name, and initialisms as Go
// writes them: RequestId is [RequestID]. The params of a message are named after it, such as
// [CallToolRequestParams]. A constant of the schema is not a field: the codec writes and
// checks it. An optional member is a pointer, or a slice, map or raw JSON, and nil if absent.
// An empty list, map or object is not absent. The json tags of fields are for readers and for tools
// that reflect: the methods of the types decide, and say more than tags can. The built-in new makes
// a pointer to a value:
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
// [RequestID] and [ProgressToken] are comparable and keep 1, "1" and 2^53+1 apart.
// Free-form values, such as a tool's arguments and schemas, are raw JSON, so that numbers
// and the order of members stay as they were sent. Members that are not in the schema are
// kept in Extra and written back, except for the jsonrpc and id of a message, which belong
// to JSON-RPC.
//
// # Decoding and encoding
//
// [Decode] and [Encode] are the direct ways. The types also implement the interfaces of
// encoding/json and of github.com/go-json-experiment/json, and behave the same with both
// packages and any options. Names match only in their exact case. Duplicate members,
// invalid UTF-8, missing members, wrong types, wrong constants and unknown enum values are
// errors. A [DecodeError] has the JSON pointer to the place. Exact names matter for
// approvals: {"action":"decline","Action":"accept"} is a decline here, but an accept for a
// reader that ignores case.
//
// Decode is more lenient than the schema: null in an optional member means absent, null for
// a required list an empty one, a boolean may be the schema of a tool's argument, and a
// union value with an unknown tag becomes [*Unknown]. [DecodeStrict] refuses these. All other
// differences are listed with their reasons beside the schema in the module's repository;
// the tests read the list.
//
// An interface has no methods to decode with, so only Decode reads a union by itself:
// Decode(b, &block) with a variable of type [ContentBlock].
//
// Encode refuses values that violate the schema: an absent id, a nil union in a required
// member, invalid raw JSON, a known name in Extra. Its output is one line, and always the
// same for the same value.
//
// # Methods
//
// Each request and notification is a value with its types, named after its method: tools/call is
// [ToolsCall], notifications/initialized is [NotificationsInitialized]. Any [Caller], such as the
// peer of package jsonrpc, can call it. Any [Registrar], such as the mux of package jsonrpc, can
// serve it. Without params, pass nil.
//
//	result, err := mcptypes.ToolsCall.Call(ctx, peer, &mcptypes.CallToolRequestParams{Name: "codex"})
//
//	mcptypes.ToolsCall.Handle(mux, func(ctx context.Context, p *mcptypes.CallToolRequestParams) (*mcptypes.CallToolResult, error) {
//		return &mcptypes.CallToolResult{Content: mcptypes.Text("done")}, nil
//	})
//
// # Concurrency
//
// The types are plain data: goroutines may read a value concurrently, but not change it.
// Decoded values share no memory with the text.
//
// # What it does not do
//
// It sends nothing, and does not check the order of a session's messages. It does not check
// that a URI is valid, that base64 can be decoded, or that a tool's arguments fit its
// schema. The types are those of one version; members that other versions add are kept in
// Extra. Package modern has the types of 2026-07-28.
//
// # Speed
//
// The table has microseconds and allocations for one message. The messages: call, the
// params of a tools/call with 0.8 kB; result, its result with two blocks, 0.9 kB; list, a
// tools/list of 100 tools with 57 kB. The rows: Decode and Encode of this package; structs
// without checks, with encoding/json and with go-json-experiment/json; the types of go-sdk
// v1.8.0 with encoding/json, then with the decoder of its own connection; mcp-go v1.2.1. Best
// of 8 or more in the benchmarks in the nested module bench, with Go 1.26.8 on two cores; only
// ratios count:
//
//	               decode:                                 encode:
//	                      call      result        list         call     result       list
//	mcptypes             1.1/6      2.0/14     146/863        1.2/1      1.0/1       91/1
//	plain structs       6.6/12     10.1/27     556/720        4.1/1      2.4/1      265/1
//	with json/v2         1.5/4      3.7/11     211/710        1.7/1      2.7/1      175/1
//	go-sdk              7.0/16     22.2/42    743/6623        4.2/4    14.1/12   618/4203
//	its connection      7.9/12     29.1/39    569/6316        2.6/1    12.8/12    342/203
//	mcp-go             24.9/70     26.5/77  1968/11937       11.9/9     9.9/12  1654/7206
//
// Both JSON packages call the same code and add to it: json/v2 reads the text once more,
// encoding/json twice.
//
// # Where to go next
//
// The examples show unions, a question to a person, and members that are not in the
// schema. Package jsonrpc sends the messages. Package elicit asks for approvals with them.
package mcptypes

//go:generate go run ../gen -schema ../schema/2025-06-18/schema.json -out .
