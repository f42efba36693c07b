package mcptypes_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes/internal/schematest"
)

// The unions.

func FuzzContentBlock(f *testing.F)              { fuzz(f, "ContentBlock") }
func FuzzPrimitiveSchemaDefinition(f *testing.F) { fuzz(f, "PrimitiveSchemaDefinition") }
func FuzzCompleteRequestParams(f *testing.F)     { fuzz(f, "CompleteRequest/params") } // CompleteReference
func FuzzReadResourceResult(f *testing.F)        { fuzz(f, "ReadResourceResult") }     // TextOrBlobResourceContents
func FuzzCreateMessageResult(f *testing.F)       { fuzz(f, "CreateMessageResult") }    // SamplingContent

// The ids.

func FuzzRequestID(f *testing.F)     { fuzz(f, "RequestId") }
func FuzzProgressToken(f *testing.F) { fuzz(f, "ProgressToken") }

// The big ones.

func FuzzElicitResult(f *testing.F)               { fuzz(f, "ElicitResult") }
func FuzzCallToolResult(f *testing.F)             { fuzz(f, "CallToolResult") }
func FuzzCallToolRequestParams(f *testing.F)      { fuzz(f, "CallToolRequest/params") }
func FuzzListToolsResult(f *testing.F)            { fuzz(f, "ListToolsResult") }
func FuzzElicitRequestParams(f *testing.F)        { fuzz(f, "ElicitRequest/params") }
func FuzzInitializeRequestParams(f *testing.F)    { fuzz(f, "InitializeRequest/params") }
func FuzzInitializeResult(f *testing.F)           { fuzz(f, "InitializeResult") }
func FuzzCreateMessageRequestParams(f *testing.F) { fuzz(f, "CreateMessageRequest/params") }
func FuzzGetPromptResult(f *testing.F)            { fuzz(f, "GetPromptResult") }
func FuzzListResourcesResult(f *testing.F)        { fuzz(f, "ListResourcesResult") }

func fuzz(f *testing.F, definition string) { schema.Fuzz(f, definition, inLedger) }

// inLedger reports whether a valid value was refused by a rule of the ledger.
func inLedger(definition string, err error) bool {
	path, msg := schematest.PathOf(err), err.Error()
	switch {
	case strings.Contains(msg, "of 64 bits"), strings.HasSuffix(msg, "up to 10^18"):
		return true // number-range
	case strings.HasSuffix(path, "/_meta"), strings.HasSuffix(path, "/_meta/progressToken"):
		return true // restored-meta
	}
	switch definition {
	case "PrimitiveSchemaDefinition":
		return true // an arm chosen by presence
	case "ElicitRequest/params":
		return strings.Contains(path, "/enum") || strings.HasSuffix(path, "/type")
	case "ReadResourceResult", "CallToolResult", "GetPromptResult", "ContentBlock":
		return strings.HasSuffix(path, "/text") || strings.Contains(path, "/resource")
	}
	return false
}
