// Package protocol has the wire types of Codex's MCP server of September 2025: events,
// approval requests, input items, configuration and the params of methods.
//
// The package has no behaviour. An engine makes these values, the server writes them, and a
// client reads them:
//
//	engine ── EventMsg ──▶ server ── codex/event {_meta, id, msg} ──▶ client
//
// A client that follows a conversation reads the member msg of each notification with
// [ParseEvent]:
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
// An engine passes such a value to its host. The server writes it with [AppendEvent].
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
// The page "The wire" of the module's documentation lists all members, and when each event
// is sent.
//
// # Form
//
// Events have names in snake_case, JSON-RPC methods in camelCase. An optional member
// without a value is left out. A few members are written as null instead; their comments
// say so. Fields with the name "-" are not on the wire: they are for the server only.
//
// Values are encoded with github.com/go-json-experiment/json. [AppendEvent] writes an event
// as one flat object, with its type next to its members, and [ParseEvent] reads it.
//
// # What can go wrong
//
// An event of an unknown type is not an error, because later versions of Codex have new
// ones: it becomes a [RawEvent] with its bytes. Unknown members of a known type are
// dropped. Duplicate members, wrong types and invalid UTF-8 are errors.
//
// # Where to go next
//
// Package engine uses these types between an engine and the server, package codexserver
// between the server and clients.
package protocol
