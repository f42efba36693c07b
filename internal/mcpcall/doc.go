// Package mcpcall calls the tools of an MCP server, with the questions and the tasks that an
// answer may consist of. Package codexserver/client is built on it.
//
// A [Session] is one connection. It uses MCP 2026-07-28 if the server offers that version, and
// a handshake otherwise:
//
//	Connect ── server/discover ──▶ 2026-07-28: each request has its metadata
//	                         └───▶ an error, or silence: initialize
//
// [Session.Call] returns the result of a tool, whatever the server answers first:
//
//	tools/call ─▶ complete ───────────────────────────────────────────▶ the result
//	           ─▶ input_required ─ Ask ─▶ tools/call with the answers ─▶ …
//	           ─▶ task ─▶ tasks/get ─ Ask ─▶ tasks/update ─▶ tasks/get ─▶ the result
//	   elicitation/create ─ Ask ─▶ its answer
//
// It sends tools/call once, and again only with the answers to questions: it never repeats a
// request whose answer was lost. [Session.Task] continues with a task of an earlier session.
package mcpcall
