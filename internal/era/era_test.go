package era_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/internal/era"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestMeta(t *testing.T) {
	const version = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	for _, tt := range []struct {
		name, params string
		want         bool
	}{
		{"version", `{"_meta":{` + version + `}}`, true},
		{"capabilities", `{"name":"x","_meta":{"a":{"b":[]},"io.modelcontextprotocol/clientCapabilities":7}}`, true},
		{"client", `{"_meta":{"io.modelcontextprotocol/clientInfo":null}}`, true},
		{"another member", `{"_meta":{"progressToken":1}}`, false},
		{"not in _meta", `{` + version + `,"arguments":{"_meta":{` + version + `}}}`, false},
		{"none", ``, false},
		{"a list", `[{"_meta":{` + version + `}}]`, false},
		{"a _meta that is not an object", `{"_meta":7}`, false},
		{"discover", `{}`, false},
		{"in another member", `{"arguments":{` + version + `}}`, false},
		{"a list after the name", `["_meta",{` + version + `}]`, false},
		{"a _meta that is a list", `{"_meta":["io.modelcontextprotocol/protocolVersion",1]}`, false},
		{"cut before _meta", `{"a":[1`, false},
		{"cut in a name", `{"_me`, false},
		{"cut in _meta", `{"_meta":{` + version, false},
		// With a duplicate member a request still belongs to this era, which refuses it.
		{"duplicate before _meta", `{"a":1,"a":2,"_meta":{` + version + `}}`, true},
		{"duplicate in another member", `{"inputResponses":{"q1":{"action":"decline","action":"accept"}},"_meta":{` + version + `}}`, true},
		{"duplicate in _meta", `{"_meta":{"a":1,"a":2,` + version + `}}`, true},
		{"two _meta", `{"_meta":{},"_meta":{` + version + `}}`, true},
	} {
		must.Equal(t, tt.name, tt.want, era.Meta(json.RawMessage(tt.params)) != nil)
	}
}

// TestVersions pins which clients a server can speak with.
func TestVersions(t *testing.T) {
	want := []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
	if got := era.Versions(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
