package main

import "strings"

// commonFields describes members that mean the same wherever they stand, and
// those that a schema's flattening lost. Our schema describes the others.
var commonFields = map[string]string{
	"_meta":       "Meta is for the protocol and its extensions, by names with a prefix; nil is absent.",
	"annotations": "Annotations tell a client how to use it.",
	"cursor":      "Cursor is where to go on, from the page before; nil begins the list.",
	"mimeType":    "MimeType is the format, if it is known.",
	"nextCursor":  "NextCursor is where the next page begins; nil ends the list.",
	"params":      "Params are what the message says.",
	"title":       "Title is for people to know it by; Name stands in for one that is nil.",
	"uri":         "Uri is its address, in whatever scheme the server understands.",
}

// pages lists the definitions that follow a page of the specification.
var pages = map[string]string{
	"basic": "BaseMetadata EmptyResult JSONRPCError JSONRPCMessage JSONRPCNotification JSONRPCRequest JSONRPCResponse " +
		"Notification Request RequestId Result ClientNotification ClientRequest ClientResult ServerNotification ServerRequest ServerResult",
	"basic/lifecycle":              "ClientCapabilities Implementation InitializeRequest InitializeResult InitializedNotification ServerCapabilities",
	"basic/utilities/cancellation": "CancelledNotification",
	"basic/utilities/ping":         "PingRequest",
	"basic/utilities/progress":     "ProgressNotification ProgressToken",
	"client/elicitation":           "BooleanSchema ElicitRequest ElicitResult EnumSchema NumberSchema PrimitiveSchemaDefinition StringSchema",
	"client/roots":                 "ListRootsRequest ListRootsResult Root RootsListChangedNotification",
	"client/sampling":              "CreateMessageRequest CreateMessageResult ModelHint ModelPreferences Role SamplingMessage",
	"server/prompts": "GetPromptRequest GetPromptResult ListPromptsRequest ListPromptsResult Prompt PromptArgument " +
		"PromptListChangedNotification PromptMessage",
	"server/resources": "Annotations BlobResourceContents ListResourceTemplatesRequest ListResourceTemplatesResult ListResourcesRequest " +
		"ListResourcesResult ReadResourceRequest ReadResourceResult Resource ResourceContents ResourceListChangedNotification " +
		"ResourceTemplate ResourceUpdatedNotification SubscribeRequest TextResourceContents UnsubscribeRequest",
	"server/tools": "AudioContent CallToolRequest CallToolResult ContentBlock EmbeddedResource ImageContent ListToolsRequest " +
		"ListToolsResult ResourceLink TextContent Tool ToolAnnotations ToolListChangedNotification",
	"server/utilities/completion": "CompleteRequest CompleteResult PromptReference ResourceTemplateReference",
	"server/utilities/logging":    "LoggingLevel LoggingMessageNotification SetLevelRequest",
	"server/utilities/pagination": "Cursor PaginatedRequest PaginatedResult",
}

// pageOf returns the page of the specification that a definition follows.
func pageOf(definition string) (page string, ok bool) {
	for page, definitions := range pages {
		for d := range strings.FieldsSeq(definitions) {
			if d == definition {
				return page, true
			}
		}
	}
	return "", false
}
