// Package bench compares the types of mcptypes and of mcptypes/modern with those of other Go
// libraries. It is a separate module, so that the project does not depend on them.
//
//	go test -bench . -count 6
//
// The messages of 2025-06-18: call, the params of tools/call with 0.9 kB; result,
// its result with two blocks and structured content; list, a tools/list of 100
// tools with 55 kB; text, a result with one text of 1 MiB. Those of 2026-07-28:
// modern-call, the params of a repeated tools/call with its metadata, an answer
// and the state; modern-task, the result of tasks/get for a completed task;
// modern-questions, that of a task with two questions;
// modern-list, the list of 100 tools.
//
// The codecs: plain structs, which check nothing, with both JSON packages; mcptypes with Decode and Encode and with each JSON
// package; go-sdk with encoding/json and with the decoder of its own connection; mcp-go. go-sdk has no tasks, so
// modern-task uses a struct in its style.
package bench
