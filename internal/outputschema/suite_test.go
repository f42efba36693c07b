package outputschema_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestSuite runs the official test suite. testdata/SOURCE says what it leaves out.
func TestSuite(t *testing.T) {
	file := must.Get(os.Open("testdata/suite.ndjson.gz"))(t)
	defer file.Close()
	text := must.Get(gzip.NewReader(file))(t)
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	checked := 0
	for lines.Scan() {
		var group struct {
			Draft, File, Description string
			Schema                   json.RawMessage
			Tests                    []struct {
				Description string
				Data        json.RawMessage
				Valid       bool
			}
		}
		must.OK(t, json.Unmarshal(lines.Bytes(), &group))
		name := group.Draft + " " + group.File + ": " + group.Description
		schema, err := outputschema.Compile(inDraft(group.Draft, group.Schema))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, test := range group.Tests {
			checked++
			if _, err := schema.Check(string(test.Data)); (err == nil) != test.Valid {
				t.Errorf("%s: %s: %v", name, test.Description, err)
			}
		}
	}
	if err := lines.Err(); err != nil || checked < 1000 {
		t.Errorf("%d cases checked: %v", checked, err)
	}
}

// inDraft returns a schema that names its draft, and is an object.
func inDraft(draft string, schema json.RawMessage) json.RawMessage {
	address := "https://json-schema.org/draft/2020-12/schema"
	if draft == "07" {
		address = "http://json-schema.org/draft-07/schema#"
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(schema, &members) != nil {
		members = map[string]json.RawMessage{"allOf": json.RawMessage("[" + string(schema) + "]")}
	}
	members["$schema"] = json.RawMessage(`"` + address + `"`)
	schema, _ = json.Marshal(members)
	return schema
}
