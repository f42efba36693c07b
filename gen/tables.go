package main

// The exceptions: what the generator cannot read off a schema. A row that does
// not apply to a schema stays unused; a test sees to it that each applies to
// the project's own.

// typeNames names inline types by their place. Without a row a type is called
// after its place, <Definition><Member>.
var typeNames = map[string]struct{ name, reason string }{
	"CompleteRequest/params/argument":            {"CompleteArgument", "the rule's name is too long"},
	"CompleteRequest/params/context":             {"CompleteContext", "the rule's name is too long"},
	"CompleteRequest/params/ref":                 {"CompleteReference", "a union reads better under a noun"},
	"CreateMessageRequest/params/includeContext": {"IncludeContext", "the rule's name is too long"},
	"CreateMessageResult/content":                {"SamplingContent", "the same arms as SamplingMessage's"},
	"ElicitRequest/params/requestedSchema":       {"ElicitSchema", "the rule's name is too long"},
	"ElicitResult/content/*":                     {"ElicitValue", "used on its own, by whoever reads a form"},
	"EmbeddedResource/resource":                  {"TextOrBlobResourceContents", "the same arms as ReadResourceResult's"},
	"JSONRPCError/error":                         {"ErrorObject", "its name in JSON-RPC 2.0"},
	"JSONRPCRequest/params/_meta":                {"RequestMeta", "one type for the _meta of every request"},
	"ListRootsRequest/params/_meta":              {"RequestMeta", "one type for the _meta of every request"},
	"PingRequest/params/_meta":                   {"RequestMeta", "one type for the _meta of every request"},
	"ReadResourceResult/contents/*":              {"TextOrBlobResourceContents", "ResourceContents is another definition"},
	"Request/params/_meta":                       {"RequestMeta", "one type for the _meta of every request"},
	"SamplingMessage/content":                    {"SamplingContent", "one union for both sides of sampling"},
	"Tool/inputSchema":                           {"ToolSchema", "the same members as outputSchema's"},
	"Tool/outputSchema":                          {"ToolSchema", "the same members as inputSchema's"},
}

// handTypes are written by hand in the package, for a list of types that has
// no counterpart in Go.
var handTypes = map[string]struct {
	types  string
	reason string
}{
	"RequestId":     {"string integer", "comparable, keeps 1, \"1\" and 2^53+1 apart"},
	"ProgressToken": {"string integer", "comparable, keeps 1, \"1\" and 2^53+1 apart"},
	"ElicitValue":   {"boolean integer string", "comparable, keeps the text of numbers"},
}

// rawMembers are objects that stay raw JSON in Go, so that the order of their
// members and the text of their numbers survive. Other open objects become maps
// of raw members.
var rawMembers = map[string]string{
	"CallToolRequest/params/arguments": "read by the tool, into a type of its own",
	"CallToolResult/structuredContent": "written by the tool, from a type of its own",
	"Tool/inputSchema":                 "a JSON schema of any dialect, shown to a model as it stands",
	"Tool/outputSchema":                "a JSON schema of any dialect, shown to a model as it stands",
}

// lostMeta gives back the _meta that upstream's flattening of its TypeScript
// loses wherever a message declares params of its own: in 18 of 25 methods, and
// in PaginatedRequest. The key is the end of the definition's name.
var lostMeta = map[string]struct{ typeName, reason string }{
	"Request":      {"RequestMeta", "RequestParams of schema.ts has it, with the progress token"},
	"Notification": {"", "NotificationParams of schema.ts has it, an open object"},
}

// telling lists, for unions whose arms no constant tells apart, the members
// whose presence does. The arm with more of them is tried first.
var telling = map[string]struct {
	arms   map[string][]string
	reason string
}{
	"JSONRPCMessage": {map[string][]string{
		"JSONRPCRequest":      {"method", "id"},
		"JSONRPCNotification": {"method"},
		"JSONRPCResponse":     {"result"},
		"JSONRPCError":        {"error"},
	}, "JSON-RPC 2.0, sections 4 and 5"},
	"PrimitiveSchemaDefinition": {map[string][]string{
		"EnumSchema": {"enum"},
	}, "both say type string, and every EnumSchema is a valid StringSchema too"},
	"TextOrBlobResourceContents": {map[string][]string{
		"TextResourceContents": {"text"},
		"BlobResourceContents": {"blob"},
	}, "no constant; text first, when both are there the other is an unknown member"},
}

// openUnions cannot be decided from the value alone, since their first arm
// admits every object.
var openUnions = map[string]string{
	"ClientResult": "the request's method says which result it is",
	"ServerResult": "the request's method says which result it is",
}

// messageUnions say who sends which message.
var messageUnions = map[string]struct{ client, server bool }{
	"ClientRequest":      {client: true},
	"ClientNotification": {client: true},
	"ServerRequest":      {server: true},
	"ServerNotification": {server: true},
}
