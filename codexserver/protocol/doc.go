// Package protocol has the wire types of Codex's MCP server of September 2025: events,
// approval requests, input items, configuration and the params of methods.
//
// The package has no behaviour. An engine makes these values, the server writes them, and a
// client reads them:
//
//	engine ── EventMsg ──▶ server ── codex/event {_meta, id, msg} ──▶ client
//
// [AppendEvent] writes an event as one flat object, with its type next to its members, and [ParseEvent] reads the member
// msg of a notification. An event of an unknown type becomes a [RawEvent], because later versions of Codex have new ones;
// unknown members of a known type are dropped.
//
// Events have names in snake_case, JSON-RPC methods in camelCase. An optional member without a value is left out, or
// written as null where its comment says so. Fields with the name "-" are not on the wire: they are for the server only.
// CallID is the model's id of a call, which ties the events of one call together, TurnID is the turn's, and ConversationID,
// a UUID, the conversation's. Command is an argv. A patch has changes by path. Paths are absolute where no comment says
// otherwise.
//
// The page "The wire" of the module's documentation lists all members, and when each event is sent.
//
// Package engine uses these types between an engine and the server, package codexserver between the server and clients.
package protocol
