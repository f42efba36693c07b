package appserver_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas checks what the bridge sends against the schema of Codex.
type schemas struct {
	compiler *jsonschema.Compiler
	calls    map[string]string // the definitions of the params by method
	answers  map[string]string // the definitions of the answers by method
	mu       sync.Mutex
}

var newestSchema = sync.OnceValues(func() (*schemas, error) {
	text, err := os.ReadFile("apptypes/schema.json")
	if err != nil {
		return nil, err
	}
	uses, err := os.ReadFile("apptypes/uses.json")
	if err != nil {
		return nil, err
	}
	var used struct{ Calls, Asks map[string]string }
	if err := json.Unmarshal(uses, &used); err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	s := &schemas{compiler: jsonschema.NewCompiler(), calls: map[string]string{}, answers: map[string]string{}}
	s.compiler.DefaultDraft(jsonschema.Draft7)
	for method, definitions := range used.Calls {
		s.calls[method], _, _ = strings.Cut(definitions, " ")
	}
	for method, definitions := range used.Asks {
		_, s.answers[method], _ = strings.Cut(definitions, " ")
	}
	return s, s.compiler.AddResource("schema.json", document)
})

// check reports a value that does not fit a definition. There is none for methods that the schema
// does not have.
func (s *schemas) check(t *testing.T, method, definition string, raw []byte) {
	t.Helper()
	if definition == "" || definition == "-" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	schema, err := s.compiler.Compile("schema.json#/definitions/" + definition)
	if err != nil {
		t.Errorf("%s: %v", method, err)
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%s does not fit Codex's schema: %v\n%s", method, err, raw)
	}
}

// TestSchemaChecks checks that the check of every message in these tests can fail.
func TestSchemaChecks(t *testing.T) {
	s, err := newestSchema()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		definition, value string
		fits              bool
	}{
		{"TurnStartParams", `{"threadId":"t","input":[{"type":"text","text":"x"}]}`, true},
		{"TurnStartParams", `{"threadId":"t","input":[{"type":"text"}]}`, false},
		{"TurnStartParams", `{"threadId":"t"}`, false},
		{"ThreadStartParams", `{"sandbox":"read-only"}`, true},
		{"ThreadStartParams", `{"sandbox":"readOnly"}`, false},
		{"CommandExecutionRequestApprovalResponse", `{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["ls"]}}}`, true},
		{"CommandExecutionRequestApprovalResponse", `{"decision":"approved"}`, false},
	} {
		schema, err := s.compiler.Compile("schema.json#/definitions/" + tt.definition)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(tt.value))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != tt.fits {
			t.Errorf("%s %s: %v", tt.definition, tt.value, err)
		}
	}
}
