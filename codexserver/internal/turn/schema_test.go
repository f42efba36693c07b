package turn_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// schema returns the schema. It is changed to refuse unknown members.
func schema(t testing.TB) *outputschema.Schema {
	t.Helper()
	var doc any
	must.OK(t, json.Unmarshal([]byte(turn.Schema), &doc))
	closeObjects(doc)
	closed, err := json.Marshal(doc)
	must.OK(t, err)
	s, err := outputschema.Compile(closed)
	must.OK(t, err)
	return s
}

func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["properties"].(map[string]any); ok {
			v["additionalProperties"] = false
		}
		for _, inner := range v {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range v {
			closeObjects(inner)
		}
	}
}

// check checks that a report is strict JSON, has at most limit bytes, and matches the schema.
func check(t testing.TB, s *outputschema.Schema, out []byte, limit int) {
	t.Helper()
	if len(out) > limit {
		t.Errorf("%d bytes, more than %d", len(out), limit)
	}
	if !jsontext.Value(out).IsValid() {
		t.Fatalf("no JSON: %.300s", out)
	}
	if _, err := s.Check(string(out)); err != nil {
		t.Errorf("%v\n%.2000s", err, out)
	}
}

// TestShortSchemaNamesAll checks that the short schema names the members of the full one, and accepts the same reports.
func TestShortSchemaNamesAll(t *testing.T) {
	type object struct {
		Required   []string
		Properties map[string]struct{ Type string }
	}
	var whole, short object
	for from, into := range map[string]*object{turn.Schema: &whole, turn.ShortSchema: &short} {
		must.OK(t, json.Unmarshal([]byte(from), into, json.MatchCaseInsensitiveNames(true)))
	}
	for name, member := range whole.Properties {
		if member.Type == "" && name != "output" {
			whole.Properties[name] = struct{ Type string }{"string"} // an enum has no type
		}
	}
	if diff := cmp.Diff(whole, short); diff != "" || len(short.Properties) == 0 {
		t.Errorf("-whole +short:\n%s", diff)
	}
}

// TestSchemaOfAFailure checks the result of a call that fails before its turn. It has a text, and may have a thread.
func TestSchemaOfAFailure(t *testing.T) {
	check(t, schema(t), []byte(`{"threadId":"","content":"codex: argument /prompt is missing"}`), 100)
}
