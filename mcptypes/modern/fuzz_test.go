package modern_test

import "testing"

func FuzzInputResponses(f *testing.F)        { fuzz(f, "InputResponses") }
func FuzzInputRequests(f *testing.F)         { fuzz(f, "InputRequests") }
func FuzzCallToolRequestParams(f *testing.F) { fuzz(f, "CallToolRequestParams") }
func FuzzCallToolResult(f *testing.F)        { fuzz(f, "CallToolResult") }
func FuzzGetTaskResult(f *testing.F)         { fuzz(f, "GetTaskResult") }
func FuzzTaskNotification(f *testing.F)      { fuzz(f, "TaskStatusNotificationParams") }
func FuzzRequestMetaObject(f *testing.F)     { fuzz(f, "RequestMetaObject") }
func FuzzElicitRequestParams(f *testing.F)   { fuzz(f, "ElicitRequestParams") }
func FuzzPrimitiveSchema(f *testing.F)       { fuzz(f, "PrimitiveSchemaDefinition") }
func FuzzSubscriptionsListen(f *testing.F)   { fuzz(f, "SubscriptionsListenRequestParams") }
func FuzzUnsupportedVersion(f *testing.F)    { fuzz(f, "UnsupportedProtocolVersionError") }
func FuzzCreateMessageResult(f *testing.F)   { fuzz(f, "CreateMessageResult") }

func fuzz(f *testing.F, definition string) { schema.Fuzz(f, definition, nil) }
