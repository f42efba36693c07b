// Package approval has what an embedder writes to decide about the actions of an engine: rules
// that answer before a person is asked, and a desk where a person answers.
//
//	                    ┌─ Rules ── the user's configuration, or a function of yours
//	an engine asks ─────┤
//	                    └─ the MCP client, and your Desk
//	      │
//	      └─ Decision ── the record, the log, the Desk
//
// The rules come first. If they do not decide, the client and the desk are asked at once. The
// first answer counts, and the question is withdrawn from the other. If two answers arrive
// together, the stricter one counts. Without an answer the question is denied, with a reason
// for the model and for the caller.
package approval
