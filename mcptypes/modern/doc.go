// Package modern holds the types of the Model Context Protocol, version 2026-07-28, with
// the tasks extension. It is generated like package mcptypes, which has the types of
// version 2025-06-18.
//
// The documentation of mcptypes about messages, unions, decoding and encoding also applies
// to this package. This page lists the differences.
//
// # Requests without a session
//
// There is no handshake. Each request has the version that it follows and the capabilities
// of its client in its _meta.
//
//	p := modern.CallToolRequestParams{Name: "codex"}
//	p.Meta.ClientCapabilities.Elicitation = &modern.ClientCapabilitiesElicitation{}
//
// A nil ProtocolVersion is written as the version of this package. The keys of _meta are
// constants, such as [MetaProtocolVersion], for programs that read
// _meta before they decode the request. A client asks for a server's capabilities with
// [ServerDiscover].
//
// # Questions in results
//
// A server sends no requests. Its result lists what it needs, and the client repeats the
// request with the answers. Therefore [ToolsCall], [PromptsGet] and [ResourcesRead] have
// several results. resultType distinguishes them, and their Handle and Call use a union:
//
//	modern.ToolsCall.Handle(mux, func(ctx context.Context, p *modern.CallToolRequestParams) (modern.AnyCallToolResult, error) {
//		answer, ok := p.InputResponses["q1"].(*modern.ElicitResult)
//		if !ok {
//			return &modern.InputRequiredResult{InputRequests: modern.InputRequests{"q1": question}}, nil
//		}
//		…
//	})
//
// A nil ResultType is written as the kind of the Go type, so a result built in Go can leave
// it out. A decoded result always has it. A result that says complete or task and lacks the
// members of such a result is an error, not a question.
//
// An answer does not name the kind of its question. The members that are there select the
// type of an [InputResponse]; it is an [*ElicitResult] only if it can be nothing else. The
// decoder refuses answers that two readers could understand differently: with duplicate
// members, even if spelled with escapes, with names that differ only by case from action or
// content, and with wrong types.
//
// # Tasks
//
// The answer to a tools/call may be a [CreateTaskResult]. [TasksGet] then returns the task,
// with a type for each status: see [DetailedTask]. On the wire the task's members are mixed
// with those of the result; in Go the task is a field. [Task] has the members that every
// status shares, and methods that make a task of each status:
//
//	task := modern.Task{TaskID: id, CreatedAt: now, LastUpdatedAt: now}
//	result := modern.GetTaskResult{Task: task.InputRequired(questions)}
//
// The server answers [TasksUpdate] and [TasksCancel] at once. A client that asked for
// TaskIDs in a [SubscriptionFilter] gets [NotificationsTasks].
//
// # Types shared with mcptypes
//
// Types that are equal in both versions and are not arms of a union are the same in Go:
// RequestID, ProgressToken, Base64 and ElicitValue; Annotations, BaseMetadata,
// CompleteArgument, CompleteContext, Cursor, ElicitResultAction, IncludeContext,
// LoggingLevel, ModelHint, ModelPreferences, NumberSchemaType, PromptArgument,
// ResourceContents, Role, Root, ServerCapabilitiesPrompts, ServerCapabilitiesResources,
// ServerCapabilitiesTools, StringSchemaFormat and ToolAnnotations. So are DecodeError,
// Method, UnionMethod, NotificationMethod, Caller, Notifier and Registrar.
// To make ids, tokens and form values, use the functions of mcptypes, such as
// mcptypes.StringID.
//
// The arms of a union are separate types, because only types of this package can have its
// methods. TextContent, ImageContent, AudioContent, TextResourceContents,
// BlobResourceContents, PromptReference and ResourceTemplateReference have equal fields in
// both packages, so a conversion is enough:
//
//	block := modern.TextContent(old)
//
// All others differ. The deviations from the schema and their reasons are listed beside it in
// the module's repository.
//
// # Speed
//
// The table has microseconds and allocations for one message. The messages: call, the
// params of a repeated tools/call with its metadata and an answer, 1.2 kB; task, the result
// of tasks/get for a completed task, 1.2 kB; questions, that of a task with two questions,
// 1.7 kB; list, a tools/list of 100 tools, 57 kB. The rows: Decode and Encode of this
// package; structs without checks, with encoding/json and with go-json-experiment/json; the
// types of go-sdk v1.8.0 with encoding/json, then with the decoder of its own connection;
// mcp-go v1.2.1. Neither library has tasks: the row of go-sdk uses a struct in its style.
// Best of 8 or more in the benchmarks in the nested module test/bench, with Go 1.26.8 on
// two cores; only ratios count:
//
//	               decode:                                             encode:
//	                      call        task   questions        list         call       task  questions       list
//	modern              3.3/29       2.1/9      8.3/64     150/865       1.6/2      1.8/1      2.4/1      106/1
//	plain structs      12.3/44      9.9/23     20.9/98     462/722      6.2/13      5.2/1     6.3/20      214/1
//	with json/v2        5.8/27       3.0/5      9.9/46     184/710       3.7/9      2.8/3     8.2/10      138/1
//	go-sdk             14.4/80     10.2/32    39.5/234    715/6624      7.4/32     6.3/11   19.5/127   511/4203
//	its connection     17.1/72     14.4/27    48.2/228    495/6320       3.7/5      4.5/1   16.4/117    272/203
//	mcp-go             29.2/82           -           -  2227/11939     17.0/34          -          -  1858/7207
package modern

//go:generate go run ../../gen -schema ../../schema/2026-07-28/schema.json -extension ../../schema/2026-07-28/tasks.json -base ../../schema/2025-06-18/schema.json -out .
