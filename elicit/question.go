package elicit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/go-json-experiment/json/jsontext"
)

// A Question is what one elicitation/create request asks.
//
// Asking a Question does not change it, and it may be asked several times.
type Question struct {
	// Message is what the human reads. Many clients show nothing else, so it must contain
	// everything that is needed to decide.
	Message string

	// Older takes the place of Message for a client of MCP 2025-06-18 or older, whose programs read its
	// first sentence. Default: Message.
	Older string

	// Brief takes the place of Message for a client that is known to cut messages (see For).
	// Default: made from Message.
	Brief *Brief

	// Schema is the requestedSchema, a form whose values are those of the Outcome. An answer that does
	// not follow it denies; one that approves has sent the form. When nil, Options.Schema chooses one, which
	// asks for a decision only.
	Schema json.RawMessage

	// Extra holds members to send besides message and requestedSchema, such as
	// codex_command. MCP allows them, but the SDKs of most clients drop them. Bytes that
	// are not UTF-8 are sent as U+FFFD. The members that MCP defines (message,
	// requestedSchema, mode, _meta) are ignored here.
	Extra map[string]any

	// Meta holds the members of params._meta, which SDKs keep.
	Meta map[string]any

	// Reach is a sentence about what the action may touch if it is approved, for places that
	// show more than Message. Default: none, because it is not known.
	Reach string

	// Partial means that Message does not show all that is asked. For adds where the whole is
	// (Options.Elsewhere).
	Partial bool

	// Once means that ApprovedForSession is not offered: the schema lacks it, and an answer
	// with it counts as Approved.
	Once bool

	// Inside means that an approval for the session lets the command run again only inside the
	// sandbox. A form that offers such an approval says so.
	Inside bool

	// Always is the lasting rule that ApprovedAlways accepts. Nil means that there is none: an
	// answer with it denies.
	Always *Always

	// NotDone is the clause for what a refusal means, used in the sentences of [Outcome.ForCaller].
	// Empty means "the command was not run", or for a Schema "nothing was done".
	NotDone string
}

// Always is a lasting rule that a person may accept with the answer to a question.
type Always struct {
	// Words say exactly what the rule allows, after "Always allow": "exactly `go test` in /work, in
	// the sandbox". A form shows them on one line.
	Words string
}

// For returns q as that client is asked: without Always if its form does not show that, with
// Brief as the Message if the client cuts messages, and with the place of the whole if the Message
// has a part. Read the answer with the returned question.
func (q *Question) For(client Client, o *Options) *Question {
	shows := q.Schema == nil && o.shows(client)
	if client.isBrief() {
		return q.brief(o, shows)
	}
	asked := *q
	if client.ProtocolVersion < versionModes {
		asked.Message = cmp.Or(q.Older, q.Message)
	}
	if !shows {
		asked.Always = nil
	}
	if place := o.resolved().Elsewhere; q.Partial && place != "" {
		asked.Message += "\n" + plain.WholeIs + plain.Line(place) + "."
	}
	return &asked
}

// Params returns the params of the elicitation/create request that asks q of that client.
// It fails only if Extra, Meta or Schema cannot be encoded as JSON.
func (q *Question) Params(client Client, o *Options) (json.RawMessage, error) {
	params := maps.Clone(q.Extra)
	if params == nil {
		params = make(map[string]any)
	}
	for _, reserved := range []string{"mode", "_meta"} {
		delete(params, reserved)
	}
	params["message"] = q.Message
	params["requestedSchema"] = jsontext.Value(q.Schema)
	if q.Schema == nil {
		params["requestedSchema"] = jsontext.Value(o.schema(client, q))
	}
	if client.ProtocolVersion >= versionModes {
		params["mode"] = "form"
	}
	if len(q.Meta) > 0 {
		params["_meta"] = q.Meta
	}
	raw, err := marshal(params)
	if err != nil {
		return nil, fmt.Errorf("elicit: params of %s: %w", method, err)
	}
	return raw, nil
}

// InputRequest returns q as one of the inputRequests of a result, with which a server asks
// since MCP 2026-07-28
// (https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr): the method
// elicitation/create with the Params for that client. Use it only if client.CanAsk()
// returns true. It fails as Params does.
func (q *Question) InputRequest(client Client, o *Options) (json.RawMessage, error) {
	params, err := q.Params(client, o)
	if err != nil {
		return nil, err
	}
	raw, err := marshal(map[string]any{"method": method, "params": jsontext.Value(params)})
	if err != nil {
		return nil, fmt.Errorf("elicit: input request: %w", err)
	}
	return raw, nil
}

// limit reduces an approval for the session to a plain one if q did not offer it.
func (q *Question) limit(out Outcome) Outcome {
	if q.Once && out.Decision == ApprovedForSession {
		out.Decision = Approved
		out.Detail = "approved for the session, which was not offered: counts this once"
	}
	return out
}

// isForm reports whether q asks for values and is no approval.
func (q *Question) isForm() bool { return q.Schema != nil && string(q.Schema) != declineOnly }

// request is what q is called.
func (q *Question) request() string {
	if q.isForm() {
		return "question"
	}
	return "approval request"
}

// answer is what an answer to q is called.
func (q *Question) answer() string {
	if q.isForm() {
		return "answer"
	}
	return "approval answer"
}

func (q *Question) notDone() string {
	if q.isForm() {
		return cmp.Or(q.NotDone, "nothing was done")
	}
	return cmp.Or(q.NotDone, "the command was not run")
}
