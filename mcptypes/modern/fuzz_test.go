package modern_test

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

func FuzzInputResponses(f *testing.F)         { fuzz(f, "InputResponses") }
func FuzzInputRequests(f *testing.F)          { fuzz(f, "InputRequests") }
func FuzzCallToolRequest(f *testing.F)        { fuzz(f, "CallToolRequest") }
func FuzzCallToolResponse(f *testing.F)       { fuzz(f, "CallToolResultResponse") }
func FuzzGetTaskResult(f *testing.F)          { fuzz(f, "GetTaskResult") }
func FuzzTaskNotification(f *testing.F)       { fuzz(f, "TaskStatusNotificationParams") }
func FuzzRequestMetaObject(f *testing.F)      { fuzz(f, "RequestMetaObject") }
func FuzzElicitRequestParams(f *testing.F)    { fuzz(f, "ElicitRequestParams") }
func FuzzPrimitiveSchema(f *testing.F)        { fuzz(f, "PrimitiveSchemaDefinition") }
func FuzzSubscriptionsListen(f *testing.F)    { fuzz(f, "SubscriptionsListenRequestParams") }
func FuzzUnsupportedVersion(f *testing.F)     { fuzz(f, "UnsupportedProtocolVersionError") }
func FuzzCreateMessageResult(f *testing.F)    { fuzz(f, "CreateMessageResult") }
func FuzzJSONRPCMessageOfModern(f *testing.F) { fuzz(f, "JSONRPCMessage") }

// longExponent matches a number that the judge would take very long for.
var longExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4}`)

// fuzz checks any text for a definition: a decoded value can be encoded and decoded to the
// same value, and the schema's judge admits whatever DecodeStrict does.
func fuzz(f *testing.F, definition string) {
	for _, e := range readExamples(f) {
		if e.Def == definition {
			f.Add([]byte(e.Instance))
		}
	}
	schema := readSchema(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		p := definitions[definition]()
		err := modern.Decode(in, p)
		strict := modern.DecodeStrict(in, definitions[definition]())
		if err != nil {
			if strict == nil {
				t.Fatalf("strict accepts what Decode refuses: %v", err)
			}
			return
		}
		out, err := modern.Encode(value(p))
		if err != nil {
			t.Fatalf("decoded, but not encoded: %v", err)
		}
		if bytes.ContainsAny(out, "\n\r") {
			t.Fatalf("more than one line: %q", out)
		}
		again := definitions[definition]()
		if err := modern.Decode(out, again); err != nil {
			t.Fatalf("own output %s is refused: %v", out, err)
		}
		if second, err := modern.Encode(value(again)); err != nil || !bytes.Equal(second, out) {
			t.Fatalf("%s became %s, %v", out, second, err)
		}
		if strict != nil || !jsontext.Value(in).IsValid() || longExponent.Match(in) {
			return
		}
		for _, text := range []string{string(in), string(out)} {
			if err := schema.judge(definition, text); err != nil {
				t.Fatalf("accepted, but invalid: %s: %v", text, err)
			}
		}
	})
}
