package elicit_test

import (
	"encoding/json"
	"errors"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParams(t *testing.T) {
	q := &elicit.Question{Message: "Allow Codex to run `bash -lc 'echo hi > made.txt'` in `$CWD`?"}
	q.Extra = map[string]any{
		"codex_elicitation": "exec-approval", "codex_mcp_tool_call_id": "2", "codex_event_id": "2", "codex_call_id": "call_1_0",
		"codex_command": []string{"bash", "-lc", "echo hi > made.txt"}, "codex_cwd": "$CWD",
	}
	// The real server sends this.
	const recorded = `{"codex_call_id":"call_1_0","codex_command":["bash","-lc","echo hi > made.txt"],"codex_cwd":"$CWD","codex_elicitation":"exec-approval",` +
		`"codex_event_id":"2","codex_mcp_tool_call_id":"2","message":"Allow Codex to run ` + "`bash -lc 'echo hi > made.txt'` in `$CWD`?" + `",` +
		`"requestedSchema":{"type":"object","properties":{}}}`
	for _, tt := range []struct {
		name     string
		question *elicit.Question
		client   elicit.Client
		want     string
	}{
		{"recorded", q, elicit.Client{ProtocolVersion: "2025-06-18"}, recorded},
		{"bare", &elicit.Question{Message: "Sure?"}, elicit.Client{}, `{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`},
		{"modes", &elicit.Question{Message: "Sure?"}, elicit.Client{ProtocolVersion: "2025-11-25"},
			`{"message":"Sure?","mode":"form","requestedSchema":{"type":"object","properties":{}}}`},
		{"own members win", &elicit.Question{
			Message: "Sure?", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}}}`),
			Extra: map[string]any{"message": "x", "requestedSchema": 1, "mode": "url", "_meta": 1},
			Meta:  map[string]any{"codex/approval": map[string]any{"call_id": "c"}},
		}, elicit.Client{}, `{"_meta":{"codex/approval":{"call_id":"c"}},"message":"Sure?","requestedSchema":{"type":"object","properties":{"n":{"type":"number"}}}}`},
		{"not UTF-8", &elicit.Question{Message: "Sure?", Extra: map[string]any{"codex_command": []string{"a\xffb"}}}, elicit.Client{},
			`{"codex_command":["a` + "\ufffd" + `b"],"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`},
	} {
		raw, err := tt.question.Params(tt.client, nil)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, string(raw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if len(q.Extra) != 6 {
		t.Errorf("asking changed the question: %v", q.Extra)
	}
	for _, q := range []*elicit.Question{{Extra: map[string]any{"f": func() {}}}, {Schema: json.RawMessage(`{`)}} {
		if raw, err := q.Params(elicit.Client{}, nil); err == nil {
			t.Errorf("%+v makes %s", q, raw)
		}
	}
}

// schema returns the requestedSchema of a question.
func schema(t *testing.T, q *elicit.Question, client elicit.Client, kind string) map[string]any {
	t.Helper()
	raw := must.Get(q.Params(client, &elicit.Options{Schema: elicit.Form(kind)}))(t)
	var params struct{ RequestedSchema map[string]any }
	must.OK(t, json.Unmarshal(raw, &params))
	return params.RequestedSchema
}

func TestSchema(t *testing.T) {
	const old, titled, forms = "2025-06-18", "2025-11-25", `{"elicitation":{"form":{}}}`
	for _, tt := range []struct {
		kind, version, capabilities string
		enum, oneOf                 bool
	}{
		{"", titled, forms, false, false}, {"empty", titled, forms, false, false}, {"nonsense", old, forms, false, false},
		{"decision", old, "", true, false}, {"decision", "2025-03-26", "", true, false}, {"decision", titled, "", false, true},
		{"decision-both", old, "", true, true}, {"decision-both", titled, "", true, true}, {"auto", old, "", false, false},
		{"auto", titled, `{"elicitation":{}}`, false, false},
		{"auto", old, forms, true, false},
		{"auto", titled, forms, false, true},
		{"auto", old, `{"elicitation":{"form":{},"url":{}}}`, true, false},
		{"auto", old, `{"elicitation":{"form":null}}`, false, false},
		{"auto", old, `{"elicitation":{"form":{},"form":{}}}`, false, false},
		{"auto", old, `{"elicitation":{"url":{}}}`, false, false}, {"auto", old, `{"elicitation":{}}`, false, false},
		{"auto", old, `{"form":{}}`, false, false}, {"auto", old, `{}`, false, false}, {"auto", old, ``, false, false},
	} {
		for _, q := range []*elicit.Question{{}, {Once: true}, {Inside: true}, {Inside: true, Once: true}} {
			got := schema(t, q, elicit.Client{ProtocolVersion: tt.version, Capabilities: json.RawMessage(tt.capabilities)}, tt.kind)
			// No member besides these: nothing is required.
			want := map[string]any{"type": "object", "properties": map[string]any{}}
			if tt.enum || tt.oneOf {
				values := []any{"approved", "approved_for_session", "denied", "abort"}
				titles := []any{"Approve once", "Approve for this session", "Deny, let the agent try something else", "Deny and stop this turn"}
				if q.Inside { // an approval for the session covers less than this command
					titles[1] = "Approve for this session, in the sandbox"
				}
				if q.Once {
					values, titles = slices.Delete(values, 1, 2), slices.Delete(titles, 1, 2)
				}
				decision := map[string]any{"type": "string", "title": "Decision", "description": "Leave empty to approve once."}
				if tt.enum {
					decision["enum"], decision["enumNames"] = values, titles
				}
				if tt.oneOf {
					var oneOf []any
					for i := range values {
						oneOf = append(oneOf, map[string]any{"const": values[i], "title": titles[i]})
					}
					decision["oneOf"] = oneOf
				}
				want["properties"] = map[string]any{"decision": decision, "feedback": map[string]any{
					"type": "string", "title": "Feedback for the agent", "description": "Optional, used when denying.", "maxLength": 2000.0}}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s at %s for %s, once %t, inside %t (-want +got):\n%s", tt.kind, tt.version, tt.capabilities, q.Once, q.Inside, diff)
			}
		}
	}
}

func TestCanAsk(t *testing.T) {
	for capabilities, want := range map[string]bool{
		`{"elicitation":{}}`: true, `{"elicitation":{"form":{}}}`: true, `{"elicitation":{"form":{},"url":{}}}`: true,
		`{"elicitation":{"form":{"applyDefaults":true}}}`: true, `{"elicitation":{"other":{}},"roots":{}}`: true,
		``: false, `{}`: false, `null`: false, `[]`: false, `{"elicitation":null}`: false, `{"elicitation":true}`: false,
		`{"elicitation":[]}`: false, `{"elicitation":"form"}`: false, `{"elicitation":{"url":{}}}`: false,
		`{"elicitation":{"url":null}}`: false, `{"elicitation":{"form":null}}`: false, `{"elicitation":{"form":true}}`: false,
		`{"Elicitation":{}}`: false, `{"elicitation":{},"elicitation":{}}`: false, `{"elicitation":{}`: false, `["elicitation",{}]`: false,
		`{"elicitation":{}} {}`: false, `{"elicitation":{},"name":"` + "\xff" + `"}`: false, ` { "\u0065licitation" : { } } `: true,
		`{"elicitation":{"form":{"a":1,"a":2}}}`: false,
	} {
		for _, version := range []string{"2025-06-18", "2025-11-25"} {
			client := elicit.Client{Capabilities: json.RawMessage(capabilities), ProtocolVersion: version}
			if got := client.CanAsk(); got != want {
				t.Errorf("%s at %s: %v, want %v", capabilities, version, got, want)
			}
		}
		// As a handler of initialize gets them, which refuses some.
		params, err := mcptypes.Initialize.DecodeParams(json.RawMessage(`{"protocolVersion":"2025-06-18","clientInfo":{"name":"t","version":"1"},"capabilities":` + capabilities + `}`))
		if err == nil && (elicit.Client{Capabilities: params.Capabilities}).CanAsk() != want || err != nil && want {
			t.Errorf("%s in initialize: not %v, %v", capabilities, want, err)
		}
	}
	if (elicit.Client{Capabilities: unencodable{}}).CanAsk() {
		t.Error("a client whose capabilities cannot be encoded can be asked")
	}
}

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
	raw := must.Get(q.InputRequest(client, &elicit.Options{Schema: "auto"}))(t)
	params := must.Get(q.Params(client, &elicit.Options{Schema: "auto"}))(t)
	if diff := cmp.Diff(`{"method":"elicitation/create","params":`+string(params)+`}`, string(raw)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var request modern.InputRequest
	must.OK(t, modern.DecodeStrict(raw, &request))
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
