// Package protocol holds the wire types of Codex as its MCP server spoke them in
// September 2025: events, approval requests, input items, configuration words and the ids
// that tie them together.
//
// The package has no behaviour. An engine builds these values, the server writes them, a
// client reads them:
//
//	engine ── EventMsg ──▶ server ── codex/event {_meta, id, msg} ──▶ client
//
// A client that follows a conversation reads the member msg of each notification with
// [ParseEvent] and looks at what it is:
//
//	msg, err := protocol.ParseEvent(params.Msg)
//	if err != nil {
//		return err
//	}
//	switch e := msg.(type) {
//	case protocol.AgentMessage:
//		fmt.Println(e.Message)
//	case protocol.ExecCommandBegin:
//		fmt.Println("running", e.Command)
//	case protocol.TaskComplete, protocol.TurnAborted:
//		// the turn is over
//	}
//
// An engine hands such a value to its host, which writes it with [AppendEvent].
//
// # What is where
//
//	events of a turn          TaskStarted … TaskComplete, TurnAborted, TokenCount, Error
//	what the model says       AgentMessage, AgentReasoning, PlanUpdate and their deltas
//	what it does              ExecCommandBegin … End, PatchApplyBegin … End, MCPToolCallBegin … End
//	what needs an approval    ExecApprovalRequest, PatchApprovalRequest
//	what a user says          InputItem, TextInput, TurnInput
//	configuration             Config, ApprovalPolicy, SandboxMode, SandboxPolicy, TurnContext
//	JSON-RPC methods          NewConversationParams, NewConversationResult and their like
//	a conversation's file     RolloutLine, SessionMeta, ResponseItem, Compacted
//
// docs/wire.md of the module has all members in tables, and says when each event comes.
//
// # Form
//
// Member names are the wire's own (snake_case in events, camelCase in the JSON-RPC
// methods). An optional member is left out when it has no value; the few members that are
// written as null instead are pointers without omitzero, and say so. Fields with the name
// "-" are not on the wire: they carry to the server what the event lacks.
//
// Values are encoded with github.com/go-json-experiment/json; [AppendEvent] writes an
// event's flat form, its type among its own members, and [ParseEvent] reads it.
//
// # What can go wrong
//
// An event of a type that this package does not know is not an error: it becomes a
// [RawEvent] with its bytes, so that later Codex can be followed. Unknown members of a
// known type are dropped. Duplicate members, wrong types and invalid UTF-8 are errors.
//
// # Where to go next
//
// Package engine uses these types between an engine and the server, package codexserver
// between the server and clients.
package protocol
