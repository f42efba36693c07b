// Package protocol holds the wire types of Codex as its MCP server spoke them
// in September 2025: events, approval requests, input items, configuration
// words and the ids that tie them together.
//
// The package has no behaviour. An engine builds these values, the server
// writes them, a client reads them:
//
//	engine ── EventMsg ──▶ server ── codex/event {_meta, id, msg} ──▶ client
//
// Member names are the wire's own (snake_case in events, camelCase in the
// JSON-RPC methods). An optional member is left out when it has no value; the
// few members that are written as null instead are pointers without omitzero,
// and say so.
//
// Values are encoded with github.com/go-json-experiment/json; an event's flat
// form, its type beside its own members, comes from [AppendEvent] and goes back
// through [ParseEvent].
package protocol
