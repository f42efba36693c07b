// Package modern holds the types of the Model Context Protocol, version 2026-07-28, with
// the tasks extension. It is generated from their schemas in the way of package mcptypes,
// which holds those of version 2025-06-18.
//
// What that package documents about messages, unions, decoding and encoding holds here
// too. This page lists the differences.
//
// # A request by itself
//
// There is no handshake: each request says in its _meta which version it follows and what
// its client can do.
//
//	p := modern.CallToolRequestParams{
//		Meta: modern.RequestMetaObject{ProtocolVersion: modern.ProtocolVersion},
//		Name: "codex",
//	}
//	p.Meta.ClientCapabilities.Elicitation = &modern.ClientCapabilitiesElicitation{}
//
// The keys of _meta are constants, such as [MetaProtocolVersion], for readers that look
// before they decode. A client learns from [ServerDiscover] what a server can do.
//
// # Questions in results
//
// A server asks nothing. It answers that it needs more, and the client repeats the
// request with the answers. So [ToolsCall], [PromptsGet] and [ResourcesRead] have several
// results, which resultType distinguishes, and their methods take and return a union:
//
//	modern.ToolsCall.Handle(mux, func(ctx context.Context, p *modern.CallToolRequestParams) (modern.AnyCallToolResult, error) {
//		answer, ok := p.InputResponses["q1"].(*modern.ElicitResult)
//		if !ok {
//			return &modern.InputRequiredResult{InputRequests: modern.InputRequests{"q1": question}}, nil
//		}
//		…
//	})
//
// A nil ResultType is written as what the Go type says, so a result built in Go needs
// none; a decoded one always has it.
//
// Nothing in an answer says which question it answers. The type of an [InputResponse] is
// chosen by the members that are there, and an [*ElicitResult] comes from a value that
// reads as nothing else. Its decoder refuses what an approval must not depend on:
// duplicate members, also when spelled with escapes, names that differ from action or
// content by case alone, and wrong types.
//
// # Tasks
//
// A tools/call may be answered with a [CreateTaskResult]. [TasksGet] then returns the
// task, whose type says its status: see [DetailedTask]. On the wire the task's members
// are mixed with those of the result; in Go the task is a field. [Task] has what all of
// them share, and makes them:
//
//	task := modern.Task{TaskId: id, CreatedAt: now, LastUpdatedAt: now}
//	result := modern.GetTaskResult{Task: task.InputRequired(questions)}
//
// [TasksUpdate] and [TasksCancel] are acknowledged at once. A client that asked for
// TaskIds in a [SubscriptionFilter] gets [NotificationsTasks].
//
// # Which types are those of mcptypes
//
// Types that are equal in both versions and are not arms of a union are the same in Go:
// RequestId, ProgressToken, Base64 and ElicitValue; Annotations, BaseMetadata,
// CompleteArgument, CompleteContext, Cursor, ElicitResultAction, IncludeContext,
// LoggingLevel, ModelHint, ModelPreferences, NumberSchemaType, PromptArgument,
// ResourceContents, Role, Root, ServerCapabilitiesPrompts, ServerCapabilitiesResources,
// ServerCapabilitiesTools, StringSchemaFormat and ToolAnnotations. So are DecodeError,
// Method, UnionMethod, NotificationMethod, MethodInfo, Caller, Notifier and Registrar.
// Ids, tokens and form values are made by the functions of mcptypes, such as
// mcptypes.StringID.
//
// The arms of a union are types of their own, as only they can satisfy it. Where their
// fields are equal, as those of TextContent, ImageContent, AudioContent,
// TextResourceContents, BlobResourceContents, PromptReference and
// ResourceTemplateReference, a conversion makes one of the other:
//
//	block := modern.TextContent(old)
//
// All others differ. The deviations from the schema, with their reasons, are in
// schema/2026-07-28/deviations.json.
//
// # Speed
//
// Microseconds and allocations for one message: call is the params of a repeated
// tools/call of 1.2 kB with its metadata and an answer, task the result of tasks/get of
// 1.2 kB for a completed task, list a tools/list of 100 tools and 57 kB. The rows are
// Decode and Encode of this package, then the types of go-sdk v1.8.0 by encoding/json and
// by the decoder of its own connection, and of mcp-go v1.2.1. Neither has tasks; for
// go-sdk a struct in its style was written. One run of the benchmarks in the nested
// module mcptypes/bench, the best of 20, on two shared cores of an Intel Xeon with Go
// 1.26.8:
//
//	                decode:                      encode:
//	                   call    task        list     call    task      list
//	modern           6.7/31  8.4/20    350/1013   3.5/20   2.8/1   190/101
//	go-sdk          17.8/80 14.2/32    928/6621   9.0/32  7.7/11  693/4201
//	its connection  22.5/72 20.0/27    701/6315    6.5/5   6.1/1   637/201
//	mcp-go          31.4/82       -  2499/11922  19.8/34       - 1869/7205
package modern

//go:generate go run ../../gen -schema ../../schema/2026-07-28/schema.json -extension ../../schema/2026-07-28/tasks.json -base ../../schema/2025-06-18/schema.json -out .
