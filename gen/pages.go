package main

import (
	"slices"
	"strings"
)

// commonFields describes members that mean the same everywhere, and members that upstream's
// flattening lost. Our copy of the schema describes all others.
var commonFields = map[string]string{
	"_meta":       "Meta holds data of the protocol and its extensions under prefixed names; nil is absent.",
	"annotations": "Annotations are hints for the client.",
	"cacheScope":  "CacheScope says who may share a cached copy of the result.",
	"createdAt":   "CreatedAt is when the task began, in ISO 8601.",
	"cursor":      "Cursor is the NextCursor of the previous page; nil starts at the beginning.",
	"data":        "Data has details, in no fixed form.",
	"icons":       "Icons are pictures for a user interface.",
	"id":          "ID names the request.",
	"inputResponses": "InputResponses are the answers to what an [InputRequiredResult] asked for; nil means no " +
		"answers.",
	"lastUpdatedAt":  "LastUpdatedAt is when the task changed last, in ISO 8601.",
	"message":        "Message says what went wrong, in one sentence.",
	"mimeType":       "MimeType is the format, if it is known.",
	"nextCursor":     "NextCursor is where the next page begins; nil ends the list.",
	"params":         "Params are the parameters of the message.",
	"pollIntervalMs": "PollIntervalMs is how long to wait before asking again, in milliseconds.",
	"requestState":   "RequestState is the state from an [InputRequiredResult], unchanged; nil is absent.",
	"result":         "Result is the result of the request.",
	"resultType":     "ResultType is the kind of the result; nil is written as the kind of the Go type.",
	"statusMessage":  "StatusMessage describes the status for a person.",
	"taskId":         "TaskID names the task.",
	"taskIds":        "TaskIDs are the tasks to send a [TaskStatusNotification] for.",
	"title":          "Title is the name to show to people; nil means that Name is shown.",
	"ttlMs":          "TTLMs is how long the result may be cached, in milliseconds.",
	"uri":            "URI is the address, in any scheme that the server understands.",
}

// pages lists the definitions that each page of the specification describes.
var pages = map[string]string{
	"basic": "BaseMetadata EmptyResult JSONRPCError JSONRPCMessage JSONRPCNotification JSONRPCRequest " +
		"JSONRPCResponse " +
		"Notification Request RequestId Result ClientNotification ClientRequest ClientResult ServerNotification " +
		"ServerRequest ServerResult " +
		"Error Icon Icons InternalError InvalidParamsError InvalidRequestError JSONArray JSONObject " +
		"JSONRPCErrorResponse " +
		"JSONRPCResultResponse JSONValue MetaObject MethodNotFoundError NotificationMetaObject NotificationParams " +
		"ParseError " +
		"RequestMetaObject RequestParams ResultMetaObject ResultType MissingRequiredClientCapabilityError",
	"basic/lifecycle": "ClientCapabilities Implementation InitializeRequest InitializeResult " +
		"InitializedNotification ServerCapabilities",
	"basic/patterns/mrtr": "InputRequest InputRequests InputRequiredResult InputResponse " +
		"InputResponseRequestParams InputResponses",
	"basic/transports/streamable-http": "HeaderMismatchError",
	"basic/utilities/cancellation":     "CancelledNotification CancelledNotificationParams",
	"basic/utilities/ping":             "PingRequest",
	"basic/utilities/progress":         "ProgressNotification ProgressNotificationParams ProgressToken",
	"basic/versioning":                 "UnsupportedProtocolVersionError",
	"client/elicitation": "BooleanSchema ElicitRequest ElicitRequestFormParams ElicitRequestParams " +
		"ElicitRequestURLParams ElicitResult EnumSchema " +
		"LegacyTitledEnumSchema MultiSelectEnumSchema NumberSchema PrimitiveSchemaDefinition SingleSelectEnumSchema " +
		"StringSchema " +
		"TitledMultiSelectEnumSchema TitledSingleSelectEnumSchema UntitledMultiSelectEnumSchema " +
		"UntitledSingleSelectEnumSchema",
	"client/roots": "ListRootsRequest ListRootsResult Root RootsListChangedNotification",
	"client/sampling": "CreateMessageRequest CreateMessageRequestParams CreateMessageResult ModelHint " +
		"ModelPreferences Role SamplingMessage " +
		"SamplingMessageContentBlock ToolChoice ToolResultContent ToolUseContent",
	"server/discover": "DiscoverRequest DiscoverResult DiscoverResultResponse",
	"server/prompts": "GetPromptRequest GetPromptRequestParams GetPromptResult GetPromptResultResponse " +
		"ListPromptsRequest ListPromptsResult " +
		"ListPromptsResultResponse Prompt PromptArgument PromptListChangedNotification PromptMessage",
	"server/resources": "Annotations BlobResourceContents ListResourceTemplatesRequest ListResourceTemplatesResult " +
		"ListResourceTemplatesResultResponse " +
		"ListResourcesRequest ListResourcesResult ListResourcesResultResponse ReadResourceRequest " +
		"ReadResourceRequestParams ReadResourceResult " +
		"ReadResourceResultResponse Resource ResourceContents ResourceListChangedNotification ResourceRequestParams " +
		"ResourceTemplate " +
		"ResourceUpdatedNotification ResourceUpdatedNotificationParams SubscribeRequest TextResourceContents " +
		"UnsubscribeRequest",
	"server/tools": "AudioContent CallToolRequest CallToolRequestParams CallToolResult CallToolResultResponse " +
		"ContentBlock EmbeddedResource " +
		"ImageContent ListToolsRequest ListToolsResult ListToolsResultResponse ResourceLink TextContent Tool " +
		"ToolAnnotations ToolListChangedNotification",
	"server/utilities/caching": "CacheableResult",
	"server/utilities/completion": "CompleteRequest CompleteRequestParams CompleteResult CompleteResultResponse " +
		"PromptReference ResourceTemplateReference",
	"server/utilities/logging": "LoggingLevel LoggingMessageNotification LoggingMessageNotificationParams " +
		"SetLevelRequest",
	"server/utilities/pagination": "Cursor PaginatedRequest PaginatedRequestParams PaginatedResult",
}

// moved lists the pages that are new since version 2026-07-28 or have other definitions.
var moved = map[string]string{
	"basic":                       "ClientCapabilities Implementation ServerCapabilities",
	"basic/patterns/cancellation": "CancelledNotification CancelledNotificationParams",
	"basic/patterns/progress":     "ProgressNotification ProgressNotificationParams ProgressToken",
	"basic/patterns/subscriptions": "SubscriptionFilter SubscriptionsAcknowledgedNotification " +
		"SubscriptionsAcknowledgedNotificationParams " +
		"SubscriptionsListenRequest SubscriptionsListenRequestParams SubscriptionsListenResult " +
		"SubscriptionsListenResultMetaObject " +
		"SubscriptionsListenResultResponse",
}

const (
	specification = "https://modelcontextprotocol.io/specification/"
	tasksPage     = "https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.md"
)

// pageOf returns the page of the version's specification that describes a definition.
func (m *model) pageOf(definition string) (page string, ok bool) {
	if m.extension[definition] {
		return tasksPage, true
	}
	tables := []map[string]string{pages}
	if m.version >= "2026-07-28" {
		tables = []map[string]string{moved, pages}
	}
	for _, table := range tables {
		for page, definitions := range table {
			if slices.Contains(strings.Fields(definitions), definition) {
				return specification + m.version + "/" + page, true
			}
		}
	}
	return "", false
}
