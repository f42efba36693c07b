package mcptypes_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The unions.

func FuzzContentBlock(f *testing.F)              { fuzz(f, "ContentBlock") }
func FuzzPrimitiveSchemaDefinition(f *testing.F) { fuzz(f, "PrimitiveSchemaDefinition") }
func FuzzJSONRPCMessage(f *testing.F)            { fuzz(f, "JSONRPCMessage") }
func FuzzClientRequest(f *testing.F)             { fuzz(f, "ClientRequest") }
func FuzzClientNotification(f *testing.F)        { fuzz(f, "ClientNotification") }
func FuzzClientResult(f *testing.F)              { fuzz(f, "ClientResult") }
func FuzzServerRequest(f *testing.F)             { fuzz(f, "ServerRequest") }
func FuzzServerNotification(f *testing.F)        { fuzz(f, "ServerNotification") }
func FuzzServerResult(f *testing.F)              { fuzz(f, "ServerResult") }
func FuzzCompleteRequest(f *testing.F)           { fuzz(f, "CompleteRequest") }     // CompleteReference
func FuzzReadResourceResult(f *testing.F)        { fuzz(f, "ReadResourceResult") }  // TextOrBlobResourceContents
func FuzzCreateMessageResult(f *testing.F)       { fuzz(f, "CreateMessageResult") } // SamplingContent

// The ids.

func FuzzRequestId(f *testing.F)     { fuzz(f, "RequestId") }
func FuzzProgressToken(f *testing.F) { fuzz(f, "ProgressToken") }

// The big ones.

func FuzzElicitResult(f *testing.F)         { fuzz(f, "ElicitResult") }
func FuzzCallToolResult(f *testing.F)       { fuzz(f, "CallToolResult") }
func FuzzCallToolRequest(f *testing.F)      { fuzz(f, "CallToolRequest") }
func FuzzListToolsResult(f *testing.F)      { fuzz(f, "ListToolsResult") }
func FuzzElicitRequest(f *testing.F)        { fuzz(f, "ElicitRequest") }
func FuzzInitializeRequest(f *testing.F)    { fuzz(f, "InitializeRequest") }
func FuzzInitializeResult(f *testing.F)     { fuzz(f, "InitializeResult") }
func FuzzCreateMessageRequest(f *testing.F) { fuzz(f, "CreateMessageRequest") }
func FuzzGetPromptResult(f *testing.F)      { fuzz(f, "GetPromptResult") }
func FuzzListResourcesResult(f *testing.F)  { fuzz(f, "ListResourcesResult") }

// longExponent matches a number that the judge would take very long for.
var longExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4}`)

// fuzz checks any text for a definition: a decoded value can be encoded and decoded to the
// same value, all ways to decode agree, and the schema's judge agrees except where the
// ledger has a rule.
func fuzz(f *testing.F, definition string) {
	for _, e := range readExamples(f) {
		if e.Def == definition {
			f.Add([]byte(e.Instance))
		}
	}
	schema := readSchema(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		p := definitions[definition]()
		err := mcptypes.Decode(in, p)
		strict := mcptypes.DecodeStrict(in, definitions[definition]())
		if err != nil && strict == nil {
			t.Fatalf("strict accepts what Decode refuses: %v", err)
		}
		bothPackagesAgree(t, definition, in, err)
		judged := jsontext.Value(in).IsValid() && !longExponent.Match(in)
		if judged && strict != nil && schema.judge(definition, string(in)) == nil && !inLedger(definition, strict) {
			t.Fatalf("refused, but valid: %v", strict)
		}
		if err != nil {
			return
		}
		out, err := mcptypes.Encode(value(p))
		if err != nil {
			t.Fatalf("decoded, but not encoded: %v", err)
		}
		if bytes.ContainsAny(out, "\n\r") {
			t.Fatalf("more than one line: %q", out)
		}
		again := definitions[definition]()
		if err := mcptypes.Decode(out, again); err != nil {
			t.Fatalf("own output %s is refused: %v", out, err)
		}
		if second, err := mcptypes.Encode(value(again)); err != nil || !bytes.Equal(second, out) {
			t.Fatalf("%s became %s, %v", out, second, err)
		}
		if strict != nil || !judged {
			return
		}
		for _, text := range []string{string(in), string(out)} {
			if err := schema.judge(definition, text); err != nil {
				t.Fatalf("accepted, but invalid: %s: %v", text, err)
			}
		}
	})
}

func isUnion(p any) bool { return reflect.ValueOf(p).Elem().Kind() == reflect.Interface }

func bothPackagesAgree(t *testing.T, definition string, in []byte, err error) {
	p1, p2 := definitions[definition](), definitions[definition]()
	if isUnion(p1) {
		return
	}
	if err1 := json.Unmarshal(in, p1); (err1 == nil) != (err == nil) {
		t.Fatalf("Decode: %v, encoding/json: %v", err, err1)
	}
	if err2 := jsonv2.Unmarshal(in, p2); (err2 == nil) != (err == nil) {
		t.Fatalf("Decode: %v, json/v2: %v", err, err2)
	}
}

// inLedger reports whether a valid value was refused by a rule of the ledger.
func inLedger(definition string, err error) bool {
	path, msg := pathOf(err), err.Error()
	switch {
	case strings.Contains(msg, "of 64 bits"), strings.HasSuffix(msg, "up to 10^18"):
		return true // number-range
	case strings.HasSuffix(path, "/_meta"), strings.HasSuffix(path, "/_meta/progressToken"):
		return true // restored-meta
	}
	switch definition {
	case "JSONRPCMessage", "PrimitiveSchemaDefinition":
		return true // an arm chosen by presence
	case "ElicitRequest", "ServerRequest":
		return strings.Contains(path, "/enum") || strings.HasSuffix(path, "/type")
	case "ReadResourceResult", "CallToolResult", "GetPromptResult", "ContentBlock":
		return strings.HasSuffix(path, "/text") || strings.Contains(path, "/resource")
	}
	return false
}
