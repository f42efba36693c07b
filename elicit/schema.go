package elicit

import (
	"encoding/json"
	"strings"

	"github.com/codexmcp/codexmcp/internal/plain"
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
	{ApprovedAlways, "Always allow "},
	{Denied, "Deny, let the agent try something else"},
	{Abort, "Deny and stop this turn"},
}

// schema returns the requestedSchema for that client. It requires no field, because some
// clients approve with an empty form. It has no defaults, because some clients submit them
// without asking.
func (o *Options) schema(client Client, q *Question) json.RawMessage {
	titled := client.ProtocolVersion >= versionModes
	switch {
	case !o.shows(client):
		return json.RawMessage(`{"type":"object","properties":{}}`)
	case o.resolved().Schema == FormDecisionBoth:
		return decisionSchema(true, true, q, client.isBrief())
	}
	return decisionSchema(!titled, titled, q, client.isBrief())
}

// shows reports whether the form for that client shows the decisions.
func (o *Options) shows(client Client) bool {
	switch o.resolved().Schema {
	case FormDecision, FormDecisionBoth:
		return true
	case FormAuto:
		return client.declaresForms()
	}
	return false
}

// decisionSchema spells the decision property as an enum with names (MCP
// 2025-06-18), as a oneOf with titles (MCP 2025-11-25), or as both. A brief one leaves the
// scope of a rule to the message.
func decisionSchema(enum, oneOf bool, q *Question, brief bool) json.RawMessage {
	const description = "Leave empty to approve once."
	var values, names, titles []string
	for _, c := range choices {
		if q.Once && c.value == ApprovedForSession {
			continue
		}
		value, title := `"`+string(c.value)+`"`, `"`+c.title+`"`
		if c.value == ApprovedForSession && q.Inside {
			title = quote(c.title + ", in the sandbox")
		}
		if c.value == ApprovedAlways {
			if q.Always == nil {
				continue
			}
			words := q.Always.Words
			if brief {
				words = "as above, in the sandbox"
			}
			title = quote(c.title + plain.OneLine(words, 0))
		}
		values = append(values, value)
		names = append(names, title)
		titles = append(titles, `{"const":`+value+`,"title":`+title+`}`)
	}
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"decision":{"type":"string","title":"Decision","description":` +
		quote(description))
	if enum {
		b.WriteString(`,"enum":[` + strings.Join(values, ",") + `],"enumNames":[` + strings.Join(names, ",") + `]`)
	}
	if oneOf {
		b.WriteString(`,"oneOf":[` + strings.Join(titles, ",") + `]`)
	}
	b.WriteString(`},"feedback":{"type":"string","title":"Feedback for the agent","description":"Optional, used when ` +
		`denying.","maxLength":2000}}}`)
	return json.RawMessage(b.String())
}

// quote returns a text as JSON. One that is not UTF-8 becomes the empty text.
func quote(text string) string {
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return `""`
	}
	return string(quoted)
}
