package elicit

import (
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// versionModes is the first MCP version with elicitation modes and with titled
// enums (oneOf). Versions are dates and compare as text.
const versionModes = "2025-11-25"

// choices are the values of the decision property and their titles. Some clients show the
// value, some the title.
var choices = []struct {
	value Decision
	title string
}{
	{Approved, "Approve once"},
	{ApprovedForSession, "Approve for this session"},
	{Denied, "Deny, let the agent try something else"},
	{Abort, "Deny and stop this turn"},
}

// formClients are the clients, by their names in initialize, that are known to render a
// form with an enum. FormAuto shows it only to them.
var formClients = []string{"Visual Studio Code", "Visual Studio Code - Insiders", "claude-code", "mcp-inspector", "inspector-client"}

// schema returns the requestedSchema for that client. It requires no field, because some
// clients approve with an empty form. It has no defaults, because some clients submit them
// without asking.
func (o *Options) schema(client Client, q *Question) json.RawMessage {
	titled := client.ProtocolVersion >= versionModes
	switch kind := o.resolved().Schema; {
	case kind == FormDecision, kind == FormAuto && client.rendersForms():
		return decisionSchema(!titled, titled, q)
	case kind == FormDecisionBoth:
		return decisionSchema(true, true, q)
	}
	return json.RawMessage(`{"type":"object","properties":{}}`)
}

// decisionSchema spells the decision property as an enum with names (MCP
// 2025-06-18), as a oneOf with titles (MCP 2025-11-25), or as both.
func decisionSchema(enum, oneOf bool, q *Question) json.RawMessage {
	description := "Leave empty to approve once."
	if q.Session != "" && !q.Once {
		description += " " + q.Session
	}
	var values, names, titles []string
	for _, c := range choices {
		if q.Once && c.value == ApprovedForSession {
			continue
		}
		value, title := `"`+string(c.value)+`"`, `"`+c.title+`"`
		values = append(values, value)
		names = append(names, title)
		titles = append(titles, `{"const":`+value+`,"title":`+title+`}`)
	}
	quoted, err := jsontext.AppendQuote(nil, description)
	if err != nil { // it is not UTF-8
		quoted = []byte(`""`)
	}
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"decision":{"type":"string","title":"Decision","description":` + string(quoted))
	if enum {
		b.WriteString(`,"enum":[` + strings.Join(values, ",") + `],"enumNames":[` + strings.Join(names, ",") + `]`)
	}
	if oneOf {
		b.WriteString(`,"oneOf":[` + strings.Join(titles, ",") + `]`)
	}
	b.WriteString(`},"feedback":{"type":"string","title":"Feedback for the agent","description":"Optional, used when denying.","maxLength":2000}}}`)
	return json.RawMessage(b.String())
}
