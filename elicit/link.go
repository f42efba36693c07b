package elicit

import (
	"encoding/json"
	"log/slog"
	"strings"
)

// A Link is where a person answers a question in a browser. A client that opens links
// (Client.CanOpen) is asked whether it opens this one: its answer approves nothing.
type Link struct {
	// URL opens the question, and nothing else.
	URL string
	// ID names the question in notifications/elicitation/complete, which ends the client's wait in
	// MCP 2025-11-25. Later versions have neither.
	ID string
}

// CanOpen reports whether the client declared that it opens the links of elicitations in URL
// mode: since MCP 2025-11-25 with {"elicitation":{"url":{}}}.
func (c Client) CanOpen() bool {
	elicitation, _ := member(c.Capabilities, "elicitation")
	url, _ := member(json.RawMessage(elicitation), "url")
	return c.ProtocolVersion >= versionModes && url.Kind() == '{'
}

// linkIntro is before the words of a question that is asked by a link.
const linkIntro = "Open the link to decide. Opening it approves nothing."

// linkParams are the members of a request that asks by a link.
func (q *Question) linkParams(client Client) map[string]any {
	message := linkIntro + "\n" + q.Message
	if lines := strings.Split(message, "\n"); client.isBrief() && len(lines) > briefLines {
		message = strings.Join(lines[:briefLines], "\n")
	}
	params := map[string]any{"mode": "url", "message": message, "url": q.Link.URL}
	if client.ProtocolVersion == versionModes {
		params["elicitationId"] = q.Link.ID
	}
	return params
}

// opened is the outcome of a question whose link the client opens. Nothing is decided.
func (q *Question) opened() Outcome {
	return Outcome{
		Decision: Denied,
		Reason:   ReasonOpened,
		Detail:   "the client opens the link of the question",
		Level:    slog.LevelDebug,
		model:    "the approval request was opened and not answered",
		caller:   "The link of the approval request was opened, and not answered; " + q.notDone() + ".",
	}
}
