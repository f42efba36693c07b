// Package gosdk adds MCP's extension for tasks (SEP-2663, io.modelcontextprotocol/tasks) to
// servers and clients of the official Go SDK.
//
// A server installs [Tasks], and a tool hands its work over:
//
//	tasks := gosdk.New(nil)
//	defer tasks.Close()
//	if err := tasks.Install(server); err != nil { … }
//	mcp.AddTool(server, tool, func(ctx context.Context, req *mcp.CallToolRequest, in Input) (*mcp.CallToolResult, any, error) {
//		if !gosdk.Declares(req) {
//			return report(ctx, in) // the client has no tasks
//		}
//		r, err := tasks.Start(ctx, req, func(ctx context.Context, t *gosdk.Task) (*mcp.CallToolResult, error) {
//			answer, err := t.Elicit(ctx, &mcp.ElicitParams{Message: "Include drafts?", RequestedSchema: schema})
//			…
//		})
//		return r, nil, err
//	})
//
// The call is answered with the task at once. The client polls it, answers its questions, and
// gets the result of the work as the result of the task:
//
//	tools/call ─▶ task, working ─ tasks/get ─▶ working ─ tasks/get ─▶ completed, with the result
//	              Elicit ─▶ input_required ─ tasks/update ─▶ working
//	                                         tasks/cancel ─▶ cancelled: the context of the work ends
//
// The extension is part of MCP 2026-07-28. Over HTTP the SDK serves that version with
// StreamableHTTPOptions.Stateless. An older client has no tasks, and [Declares] is false.
//
// # Whose task it is
//
// The id of a task is random. A request whose bearer token has a UserID gets only tasks that
// this user began.
//
// # What is kept
//
// A task that has ended is kept for [Options].Keep. Without a [Store] all tasks are lost with
// the process. With one, clients still find the results after a restart, and a task whose
// process has ended before it is failed. Such records stay in the store until somebody asks for them
// after their time.
//
// # What is missing
//
// There are no notifications about tasks: the SDK does not let a server add to
// subscriptions/listen. Clients poll.
package gosdk
