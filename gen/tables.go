package main

// The exceptions: what the generator cannot read off a schema. A row that does
// not apply to a schema stays unused; a test sees to it that each applies to
// one of the official schemas. Places are named as newer versions have them:
// the params of a message are a definition of their own, <Message>Params.

// typeNames names inline types by their place, */<member> by the member alone.
// Without a row a type is called after its place, <Definition><Member>.
var typeNames = map[string]struct{ name, reason string }{
	"*/_meta":                                   {"RequestMeta", "one type for the _meta of every request"},
	"*/annotations":                             {"Annotations", "a definition of its own in newer versions"},
	"*/cacheScope":                              {"CacheScope", "one type for every result that may be cached"},
	"CallToolRequestParams/_meta":               {"RequestMeta", "one type for the _meta of every request"},
	"CallToolResult/content/*":                  {"ContentBlock", "a definition of its own in newer versions"},
	"CallToolResultResponse/result":             {"AnyCallToolResult", "what a call may be answered with"},
	"CompleteRequestParams/argument":            {"CompleteArgument", "the rule's name is too long"},
	"CompleteRequestParams/context":             {"CompleteContext", "the rule's name is too long"},
	"CompleteRequestParams/ref":                 {"CompleteReference", "a union reads better under a noun"},
	"CreateMessageRequestParams/includeContext": {"IncludeContext", "the rule's name is too long"},
	"CreateMessageResult/content":               {"SamplingContent", "the same arms as SamplingMessage's"},
	"ElicitRequestFormParams/mode":              {"FormMode", "the rule's name is too long"},
	"ElicitRequestFormParams/requestedSchema":   {"ElicitSchema", "the rule's name is too long"},
	"ElicitRequestParams/requestedSchema":       {"ElicitSchema", "the rule's name is too long"},
	"ElicitResult/content/*":                    {"ElicitValue", "used on its own, by code that reads a form"},
	"EmbeddedResource/resource":                 {"TextOrBlobResourceContents", "the same arms as ReadResourceResult's"},
	"GetPromptResultResponse/result":            {"AnyGetPromptResult", "what a request may be answered with"},
	"JSONRPCError/error":                        {"ErrorObject", "its name in JSON-RPC 2.0"},
	"MissingRequiredClientCapabilityError/error": {
		"MissingRequiredClientCapability", "the rule's name is too long"},
	"MissingRequiredClientCapabilityError/error/data": {
		"MissingRequiredClientCapabilityData", "the rule's name is too long"},
	"PromptMessage/content":                      {"ContentBlock", "a definition of its own in newer versions"},
	"ReadResourceResult/contents/*":              {"TextOrBlobResourceContents", "ResourceContents is another definition"},
	"ReadResourceResultResponse/result":          {"AnyReadResourceResult", "what a request may be answered with"},
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

// copies are definitions that upstream's flattening wrote out as another one.
var copies = map[string]struct{ of, reason string }{
	"ClientNotification": {"CancelledNotification", "a union of one, of which the arm is left"},
}

// handTypes are written by hand in the base package, for a list of types that
// has no counterpart in Go. ElicitValue is also a list of strings in newer
// versions.
var handTypes = map[string]struct {
	types  string
	reason string
}{
	"RequestId":     {"integer string", "comparable, keeps 1, \"1\" and 2^53+1 apart"},
	"ProgressToken": {"integer string", "comparable, keeps 1, \"1\" and 2^53+1 apart"},
	"ElicitValue":   {"boolean integer string", "comparable, keeps the text of numbers"},
}

// jsonValue is the definition that stands for any JSON value, which stays raw
// in Go. Its schema leaves out null and fractions, which its source has.
var jsonValue = struct {
	name  string
	forms []string
}{"JSONValue", []string{
	`{"anyOf":[{"$ref":"#/$defs/JSONArray"},{"$ref":"#/$defs/JSONObject"},{"type":["boolean","integer","string"]}]}`,
	`{"anyOf":[{"$ref":"#/$defs/JSONObject"},{"items":{"$ref":"#/$defs/JSONValue"},"type":["array"]},{"type":["boolean","integer","string"]}]}`,
}}

// rawMembers are objects that stay raw JSON in Go, so that the order of their
// members and the text of their numbers survive. Other open objects become maps
// of raw members.
var rawMembers = map[string]string{
	"CallToolRequestParams/arguments":     "read by the tool, into a type of its own",
	"CallToolResult/structuredContent":    "written by the tool, from a type of its own",
	"CompletedTask/result":                "the result of the request that became the task, whichever that was",
	"Tool/inputSchema":                    "a JSON schema of any dialect, shown to a model unchanged",
	"Tool/outputSchema":                   "a JSON schema of any dialect, shown to a model unchanged",
	"ToolResultContent/structuredContent": "written by the tool, from a type of its own",
	"ToolUseContent/input":                "read by the tool, into a type of its own",
}

// lostMeta restores the _meta that upstream loses wherever a message declares params in
// its own place: in 18 of the 25 methods of 2025-06-18, in PaginatedRequest, and in all
// of the tasks extension. The key is the end of the definition's name. The type is the
// definition if the schema has it.
var lostMeta = map[string]struct{ definition, otherwise, reason string }{
	"Request":      {"RequestMetaObject", "RequestMeta", "RequestParams of schema.ts has it, with the progress token"},
	"Notification": {"NotificationMetaObject", "", "NotificationParams of schema.ts has it, an open object"},
}

// extended are definitions to which an extension adds the members of one of its
// own.
var extended = map[string]struct{ by, reason string }{
	"SubscriptionFilter": {"TaskSubscriptionNotifications", "the extension says so in prose: a client asks for tasks among other things"},
}

// extraArms are unions, by their place, of which definitions of an extension
// are arms too.
var extraArms = map[string]struct {
	arms   []string
	reason string
}{
	"CallToolResultResponse/result": {[]string{"CreateTaskResult"}, "a call may become a task"},
	"ServerResult": {[]string{"CreateTaskResult", "GetTaskResult", "UpdateTaskResult", "CancelTaskResult"},
		"the server sends them"},
}

// besideNames are the fields for unions whose members are mixed with those of an object.
var besideNames = map[string]struct{ name, doc, reason string }{
	"DetailedTask": {"Task", "Task is the task; its members are mixed with the others.", "the rule has no member to name it by"},
}

// resultType is the member that says what kind of result a result is. Its
// definition leaves it open, so a field of that type may be nil, which stands
// for what the specification says.
var resultType = struct {
	member, typeName, usual string
	of                      map[string]string
}{"resultType", "ResultType", "complete", map[string]string{"InputRequiredResult": "input_required"}}

// resultArms are the results that resultType distinguishes from a request's own, with the
// members that such a result must have.
var resultArms = map[string]struct {
	tag     string
	present []string
}{
	"InputRequiredResult": {"input_required", nil},
	"CreateTaskResult":    {"task", []string{"taskId"}},
}

// markers lists, for unions whose arms share every constant, the members whose presence
// marks an arm. The arm with more of them is tried first.
var markers = map[string]struct {
	present []string
	reason  string
}{
	"JSONRPCRequest":                 {[]string{"method", "id"}, "JSON-RPC 2.0, section 4"},
	"JSONRPCNotification":            {[]string{"method"}, "JSON-RPC 2.0, section 4.1"},
	"JSONRPCResponse":                {[]string{"result"}, "JSON-RPC 2.0, section 5"},
	"JSONRPCResultResponse":          {[]string{"result"}, "JSON-RPC 2.0, section 5"},
	"JSONRPCError":                   {[]string{"error"}, "JSON-RPC 2.0, section 5"},
	"JSONRPCErrorResponse":           {[]string{"error"}, "JSON-RPC 2.0, section 5"},
	"EnumSchema":                     {[]string{"enum"}, "it says type string, as StringSchema does, which admits it too"},
	"UntitledSingleSelectEnumSchema": {[]string{"enum"}, "as EnumSchema"},
	"LegacyTitledEnumSchema":         {[]string{"enum", "enumNames"}, "without the names it means the same as an untitled one"},
	"TitledSingleSelectEnumSchema":   {[]string{"oneOf"}, "as EnumSchema"},
	"UntitledMultiSelectEnumSchema":  {[]string{"items/enum"}, "both say type array"},
	"TitledMultiSelectEnumSchema":    {[]string{"items/anyOf"}, "both say type array"},
	"TextResourceContents":           {[]string{"text"}, "no constant; text first, when both are there the other is an unknown member"},
	"BlobResourceContents":           {[]string{"blob"}, "no constant"},
	"ListRootsResult":                {[]string{"roots"}, "no constant; first, so that no answer to another request passes for a person's"},
	"CreateMessageResult":            {[]string{"model"}, "no constant; before ElicitResult, whose content it has too"},
	"ElicitResult":                   {[]string{"action"}, "no constant"},
	"CallToolResult":                 {[]string{"content"}, "resultType is open"},
	"GetPromptResult":                {[]string{"messages"}, "resultType is open"},
	"ReadResourceResult":             {[]string{"contents"}, "resultType is open"},
}

// armOrder are arms that are tried before others with as many markers.
var armOrder = []string{"ListRootsResult", "CreateMessageResult"}

// guarded are members that must not occur with a name that differs by case alone, in
// versions after 2025-06-18: by definition, and in every definition.
var guarded = map[string]struct {
	members []string
	reason  string
}{
	"ElicitResult": {[]string{"action", "content"}, "a person's approval: a reader that ignores case would see another one"},
	"*":            {[]string{"resultType"}, "a question or a task must not pass for a result"},
}

// openUnions cannot be decided from the value alone, since their first arm
// admits every object.
var openUnions = map[string]string{
	"ClientResult": "the request's method says which result it is",
	"ServerResult": "the request's method says which result it is",
}

// messageUnions say who sends which message. The requests of an extension are
// the client's, its notifications the server's.
var messageUnions = map[string]struct{ client, server bool }{
	"ClientRequest":      {client: true},
	"ClientNotification": {client: true},
	"ServerRequest":      {server: true},
	"ServerNotification": {server: true},
}
