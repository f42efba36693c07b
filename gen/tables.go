package main

// These tables hold what the generator cannot derive from a schema. TestTables checks that
// each row applies to at least one official schema. Places are named as in newer versions,
// where the params of a message are a separate definition, <Message>Params.

// typeNames names inline types by their place; */<member> matches the member anywhere. A
// type without a row is named after its place, <Definition><Member>.
var typeNames = map[string]struct{ name, reason string }{
	"*/_meta":                                   {"RequestMeta", "one type for the _meta of every request"},
	"*/annotations":                             {"Annotations", "a definition of its own in newer versions"},
	"*/cacheScope":                              {"CacheScope", "one type for every result that may be cached"},
	"CallToolRequestParams/_meta":               {"RequestMeta", "one type for the _meta of every request"},
	"CallToolResult/content/*":                  {"ContentBlock", "a definition of its own in newer versions"},
	"CallToolResultResponse/result":             {"AnyCallToolResult", "every possible result of a call"},
	"CompleteRequestParams/argument":            {"CompleteArgument", "the rule's name is too long"},
	"CompleteRequestParams/context":             {"CompleteContext", "the rule's name is too long"},
	"CompleteRequestParams/ref":                 {"CompleteReference", "a union reads better under a noun"},
	"CreateMessageRequestParams/includeContext": {"IncludeContext", "the rule's name is too long"},
	"CreateMessageResult/content":               {"SamplingContent", "the same arms as SamplingMessage's"},
	"ElicitRequestFormParams/mode":              {"ElicitMode", "the rule's name is too long"},
	"ElicitRequestFormParams/requestedSchema":   {"ElicitSchema", "the rule's name is too long"},
	"ElicitRequestParams/requestedSchema":       {"ElicitSchema", "the rule's name is too long"},
	"ElicitResult/content/*":                    {"ElicitValue", "code that reads a form uses it by itself"},
	"EmbeddedResource/resource": {"TextOrBlobResourceContents",
		"the same arms as ReadResourceResult's"},
	"GetPromptResultResponse/result": {"AnyGetPromptResult", "every possible result of a request"},
	"MissingRequiredClientCapabilityError/error": {
		"MissingRequiredClientCapability", "the rule's name is too long"},
	"MissingRequiredClientCapabilityError/error/data": {
		"MissingRequiredClientCapabilityData", "the rule's name is too long"},
	"PromptMessage/content": {"ContentBlock", "a definition of its own in newer versions"},
	"ReadResourceResult/contents/*": {"TextOrBlobResourceContents",
		"ResourceContents is another definition"},
	"ReadResourceResultResponse/result":          {"AnyReadResourceResult", "every possible result of a request"},
	"SamplingMessage/content":                    {"SamplingContent", "one union for both sides of sampling"},
	"TitledMultiSelectEnumSchema/items/anyOf/*":  {"EnumOption", "the same members as TitledSingleSelectEnumSchema's"},
	"TitledSingleSelectEnumSchema/oneOf/*":       {"EnumOption", "the same members as TitledMultiSelectEnumSchema's"},
	"UnsupportedProtocolVersionError/error":      {"UnsupportedProtocolVersion", "the rule's name is too long"},
	"UnsupportedProtocolVersionError/error/data": {"UnsupportedProtocolVersionData", "the rule's name is too long"},
	"URLElicitationRequiredError/error":          {"URLElicitationRequired", "the rule's name is too long"},
	"URLElicitationRequiredError/error/data":     {"URLElicitationRequiredData", "the rule's name is too long"},
	"HeaderMismatchError/error":                  {"HeaderMismatch", "the rule's name is too long"},
	"TitledMultiSelectEnumSchema/items":          {"TitledEnumItems", "the rule's name is too long"},
	"UntitledMultiSelectEnumSchema/items":        {"UntitledEnumItems", "the rule's name is too long"},
	"ServerCapabilities/tasks/requests/tools":    {"ServerTaskTools", "the rule's name is too long"},
	"ClientCapabilities/tasks/requests/sampling": {"ClientTaskSampling", "the rule's name is too long"},
	"ClientCapabilities/tasks/requests/elicitation": {
		"ClientTaskElicitation", "the rule's name is too long"},
}

// definitionNames names definitions that would not read well under their own names in Go.
var definitionNames = map[string]struct{ name, reason string }{
	"Icons": {"IconSet", "its only member is Icons"},
}

// copies are definitions that upstream's flattening replaced by a copy of another one.
var copies = map[string]struct{ of, reason string }{
	"ClientNotification": {"CancelledNotification", "a union with one arm was flattened to the arm"},
}

// handTypes are written by hand in the base package, because Go has no counterpart for
// their lists of types. In newer versions ElicitValue may also be a list of strings.
var handTypes = map[string]struct {
	types  string
	reason string
}{
	"RequestID":     {"integer string", "comparable, keeps 1, \"1\" and 2^53+1 apart"},
	"ProgressToken": {"integer string", "comparable, keeps 1, \"1\" and 2^53+1 apart"},
	"ElicitValue":   {"boolean integer string", "comparable, keeps the text of numbers"},
}

// jsonValue is the definition of any JSON value, which stays raw in Go. The schema lacks
// null and fractions, although upstream's TypeScript source has them.
var jsonValue = struct {
	name  string
	forms []string
}{"JSONValue", []string{
	`{"anyOf":[{"$ref":"#/$defs/JSONArray"},{"$ref":"#/$defs/JSONObject"},{"type":["boolean","integer","string"]}]}`,
	`{"anyOf":[{"$ref":"#/$defs/JSONObject"},{"items":{"$ref":"#/$defs/JSONValue"},"type":["array"]},` +
		`{"type":["boolean","integer","string"]}]}`,
}}

// rawMembers are objects that stay raw JSON in Go, to keep the order of members and the
// text of numbers. Other open objects become maps of raw members.
var rawMembers = map[string]string{
	"CallToolRequestParams/arguments":     "the tool decodes it into its own type",
	"CallToolResult/structuredContent":    "the tool encodes it from its own type",
	"CompletedTask/result":                "the result of any request that can become a task",
	"Tool/inputSchema":                    "a JSON schema of any dialect, shown to a model unchanged",
	"Tool/outputSchema":                   "a JSON schema of any dialect, shown to a model unchanged",
	"ToolResultContent/structuredContent": "the tool encodes it from its own type",
	"ToolUseContent/input":                "the tool decodes it into its own type",
}

// lostMeta restores the _meta that upstream loses if a message declares its params inline:
// in 18 of the 25 methods of 2025-06-18, in PaginatedRequest, and in all of the tasks
// extension. The key is the end of the definition's name. The type is definition if the
// schema has it, else otherwise.
var lostMeta = map[string]struct{ definition, otherwise, reason string }{
	"Request":      {"RequestMetaObject", "RequestMeta", "RequestParams of schema.ts has it, with the progress token"},
	"Notification": {"NotificationMetaObject", "", "NotificationParams of schema.ts has it, an open object"},
}

// extended maps a definition to the extension's definition whose members it also gets.
var extended = map[string]struct{ by, reason string }{
	"SubscriptionFilter": {"TaskSubscriptionNotifications",
		"the extension's prose says so: a client subscribes to tasks among other things"},
}

// extraArms lists, by the place of a union, definitions of an extension that are arms too.
var extraArms = map[string]struct {
	arms   []string
	reason string
}{
	"CallToolResultResponse/result": {[]string{"CreateTaskResult"}, "a call may become a task"},
}

// besideNames are the fields for unions whose members are mixed with those of an object.
var besideNames = map[string]struct{ name, doc, reason string }{
	"DetailedTask": {"Task", "Task is the task; its members are mixed with the others.",
		"there is no member to name it after"},
}

// resultType is the member with the kind of a result. It is open in the schema, so the Go
// field may be nil; nil is written as the specification's value for the type: of, else
// usual.
var resultType = struct {
	member, typeName, usual string
	of                      map[string]string
}{"resultType", "ResultType", "complete", map[string]string{"InputRequiredResult": "input_required"}}

// resultArms are the results that are not a request's own, and their resultType.
var resultArms = map[string]string{
	"InputRequiredResult": "input_required",
	"CreateTaskResult":    "task",
}

// anyResult is the result that requires no members, so that the schema admits it with any
// resultType.
const anyResult = "InputRequiredResult"

// defaults are what is written for a nil field, in Go, by the place of the member. The field
// is a pointer, although the member is required.
var defaults = map[string]struct{ value, reason string }{
	"RequestMetaObject/io.modelcontextprotocol/protocolVersion": {"ProtocolVersion",
		"the types are those of one version"},
}

// envelope are the members that JSON-RPC adds to a message. Definitions without them stand
// for the rest of the message.
var envelope = []string{"id", "jsonrpc"}

// markers lists the members whose presence identifies an arm, for unions whose arms no
// constant distinguishes. The arm with more of them is tried first.
var markers = map[string]struct {
	present []string
	reason  string
}{
	"EnumSchema": {[]string{"enum"},
		"its type is string, like StringSchema's, which admits it too"},
	"UntitledSingleSelectEnumSchema": {[]string{"enum"}, "as EnumSchema"},
	"LegacyTitledEnumSchema": {[]string{"enum", "enumNames"},
		"without the names it means the same as an untitled one"},
	"TitledSingleSelectEnumSchema":  {[]string{"oneOf"}, "as EnumSchema"},
	"UntitledMultiSelectEnumSchema": {[]string{"items/enum"}, "both have the type array"},
	"TitledMultiSelectEnumSchema":   {[]string{"items/anyOf"}, "both have the type array"},
	"TextResourceContents": {[]string{"text"},
		"no constant; text first: if both are there, blob is an unknown member"},
	"BlobResourceContents": {[]string{"blob"}, "no constant"},
	"ListRootsResult": {[]string{"roots"},
		"no constant; first, so that an answer to another request never passes for a person's"},
	"CreateMessageResult": {[]string{"model"}, "no constant; before ElicitResult, whose content it has too"},
	"ElicitResult":        {[]string{"action"}, "no constant"},
	"CallToolResult":      {[]string{"content"}, "resultType is open"},
	"GetPromptResult":     {[]string{"messages"}, "resultType is open"},
	"ReadResourceResult":  {[]string{"contents"}, "resultType is open"},
}

// armOrder lists arms that are tried before others with the same number of markers.
var armOrder = []string{"ListRootsResult", "CreateMessageResult"}

// guarded lists members by definition ("*" for every definition). In versions after
// 2025-06-18, an object must not have another member whose name differs from them only by
// case.
var guarded = map[string]struct {
	members []string
	reason  string
}{
	"ElicitResult": {[]string{"action", "content"},
		"a person's approval: a reader that ignores case might take the other member"},
	"*": {[]string{"resultType"}, "a question or a task must not pass for a result"},
}

// messageUnions are the unions of messages, with who sends them. In an extension, the
// client sends the requests and the server the notifications.
var messageUnions = map[string]struct{ client, server bool }{
	"ClientRequest":      {client: true},
	"ClientNotification": {client: true},
	"ServerRequest":      {server: true},
	"ServerNotification": {server: true},
}
