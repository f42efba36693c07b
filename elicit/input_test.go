package elicit_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const modernMeta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"claude-code","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}}},"progressToken":7}`

func TestRequestClient(t *testing.T) {
	const version, capabilities = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities"`
	for _, tt := range []struct {
		name, meta string
		want       elicit.Client
		can        bool
	}{
		{"all", modernMeta, elicit.Client{Capabilities: json.RawMessage(`{"elicitation":{"form":{},"url":{}}}`), ProtocolVersion: "2026-07-28", Name: "claude-code"}, true},
		{"no name", `{` + version + `,` + capabilities + `:{"elicitation":{"form":{}}}}`,
			elicit.Client{Capabilities: json.RawMessage(`{"elicitation":{"form":{}}}`), ProtocolVersion: "2026-07-28"}, true},
		{"url alone", `{` + version + `,` + capabilities + `:{"elicitation":{"url":{}}}}`,
			elicit.Client{Capabilities: json.RawMessage(`{"elicitation":{"url":{}}}`), ProtocolVersion: "2026-07-28"}, false},
		{"none", `{` + version + `,` + capabilities + `:{}}`, elicit.Client{Capabilities: json.RawMessage(`{}`), ProtocolVersion: "2026-07-28"}, false},
		{"null", `{` + version + `,` + capabilities + `:{"elicitation":null}}`,
			elicit.Client{Capabilities: json.RawMessage(`{"elicitation":null}`), ProtocolVersion: "2026-07-28"}, false},
		{"other types", `{"io.modelcontextprotocol/protocolVersion":7,"io.modelcontextprotocol/clientInfo":{"name":7},` + capabilities + `:["elicitation"]}`,
			elicit.Client{Capabilities: json.RawMessage(`["elicitation"]`)}, false},
		{"of initialize", `{"capabilities":{"elicitation":{}},"protocolVersion":"2025-06-18"}`, elicit.Client{}, false},
		{"duplicate", `{` + capabilities + `:{"elicitation":{}},` + capabilities + `:{"elicitation":{}}}`, elicit.Client{}, false},
		{"duplicate within", `{` + capabilities + `:{"elicitation":{},"elicitation":{}}}`, elicit.Client{}, false},
		{"no object", `[]`, elicit.Client{}, false},
		{"absent", ``, elicit.Client{}, false},
	} {
		got := elicit.RequestClient(json.RawMessage(tt.meta))
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if got.CanAsk() != tt.can {
			t.Errorf("%s: CanAsk is %t", tt.name, got.CanAsk())
		}
	}
}

type unencodable struct{}

func (unencodable) MarshalJSON() ([]byte, error) {
	return []byte(`{"elicitation":{}}`), errors.New("no")
}

// Both halves read and write messages of the protocol.
func TestInputRequest(t *testing.T) {
	q := &elicit.Question{Message: "Sure?"}
	q.Extra = map[string]any{"codex_call_id": "c"}
	q.Meta = map[string]any{"codex/approval": map[string]any{"kind": "exec"}}
	client := elicit.RequestClient(json.RawMessage(modernMeta))
	raw, err := q.InputRequest(client, &elicit.Options{Schema: "auto"})
	must(t, err)
	params, err := q.Params(client, &elicit.Options{Schema: "auto"})
	must(t, err)
	if diff := cmp.Diff(`{"method":"elicitation/create","params":`+string(params)+`}`, string(raw)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var request modern.InputRequest
	must(t, modern.DecodeStrict(raw, &request))
	form, ok := request.(*modern.ElicitRequest).Params.(*modern.ElicitRequestFormParams)
	if !ok || form.Mode == nil || form.RequestedSchema.Properties["decision"] == nil {
		t.Errorf("got %s", raw)
	}
	if raw, err := (&elicit.Question{Schema: json.RawMessage(`{`)}).InputRequest(client, nil); err == nil {
		t.Errorf("no schema makes %s", raw)
	}
}

// An answer in inputResponses counts as it would in a result, except a flat one.
func TestReadInputResponse(t *testing.T) {
	for _, tt := range answers {
		for _, o := range []*elicit.Options{nil, {OnCancel: "deny"}} {
			q := &elicit.Question{Message: "?", Once: tt.row%2 == 0}
			got := q.ReadInputResponse(json.RawMessage(tt.result), o)
			want := q.Read(json.RawMessage(tt.result), o)
			if tt.row == 10 && want.Reason != confused {
				want.Decision, want.Reason = denied, confused
			}
			if got.Decision != want.Decision || got.Reason != want.Reason {
				t.Errorf("row %d: %s: %s %q, want %s %q", tt.row, tt.result, got.Decision, got.Reason, want.Decision, want.Reason)
			}
			if o != nil && o.NoLegacyFlat {
				t.Fatal("the options were changed")
			}
		}
	}
	if got := (&elicit.Question{}).ReadInputResponse(nil, nil); got.Decision != denied || got.Reason != confused {
		t.Errorf("a missing answer: %+v", got)
	}
}
