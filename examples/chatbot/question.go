package main

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
)

// question waits for a press.
type question struct {
	offers []offer
	answer chan offer // has room for the first press
}

// offer is a decision that a question offers.
type offer struct {
	Decision elicit.Decision `json:"const"`
	Title    string          `json:"title"`
}

// offered returns the decisions that the form of a question offers. Without fields it is MCP's plain
// form: accept, decline, cancel. The result is nil for other questions, which no button answers.
func offered(q *client.Question) []offer {
	var form struct {
		Properties map[string]struct {
			OneOf []offer `json:"oneOf"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if json.Unmarshal(q.Form, &form) != nil || len(form.Required) > 0 {
		return nil
	}
	if len(form.Properties) == 0 {
		return []offer{{elicit.Approved, "Approve"}, {elicit.Denied, "Deny"}, {elicit.Abort, "Deny and stop"}}
	}
	return form.Properties["decision"].OneOf
}

// ask asks a question in the chat and waits for a press. What a message cannot show whole, or a
// button cannot answer, is denied.
func (b *bot) ask(ctx context.Context, q *client.Question) elicit.Outcome {
	offers, text := offered(q), q.Message
	// A random name: a press names this question, not an earlier one.
	id, one := rand.Text(), &question{offers, make(chan offer, 1)}
	var rows [][]button
	for _, o := range offers {
		label := o.Title
		if o.Decision == elicit.ApprovedAlways { // a phone may cut a label, but all of the rule must be read
			label, text = "Always allow", text+"\n\n"+o.Title
		}
		rows = append(rows, []button{{label, id + " " + string(o.Decision)}})
	}
	if offers == nil || !fits(text) {
		b.say(ctx, "Denied, because a chat cannot ask this: "+text)
		return elicit.Outcome{Decision: elicit.Denied, Feedback: "the chat could not show the question"}
	}
	b.mu.Lock()
	b.open[id] = one
	b.mu.Unlock()
	defer func() { b.mu.Lock(); delete(b.open, id); b.mu.Unlock() }()
	asked, err := b.api.send(ctx, b.user, text, rows...)
	if err != nil {
		b.log.Print(err)
		return elicit.Outcome{Decision: elicit.Denied, Feedback: "the chat could not be asked"}
	}
	end, decision := "Not needed any more.", elicit.Denied
	select {
	case o := <-one.answer:
		end, decision = o.Title, o.Decision
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), last)
	defer cancel()
	if err := b.api.edit(ctx, asked, "["+elicit.OneLine(end, 0)+"] "+text); err != nil {
		b.log.Print(err)
	}
	return elicit.Outcome{Decision: decision}
}

// pressed answers the question of a button. The first press closes it.
func (b *bot) pressed(ctx context.Context, p *press) {
	id, decision, _ := strings.Cut(p.Data, " ")
	note := "This question is closed. Nothing changed."
	b.mu.Lock()
	if one := b.open[id]; one != nil {
		if i := slices.IndexFunc(one.offers, func(o offer) bool { return string(o.Decision) == decision }); i >= 0 {
			delete(b.open, id)
			one.answer <- one.offers[i]
			note = ""
		}
	}
	b.mu.Unlock()
	if err := b.api.call(ctx, "answerCallbackQuery", map[string]any{"callback_query_id": p.ID, "text": note}, nil); err != nil {
		b.log.Print(err)
	}
}

// fits reports whether a text fits into one message.
func fits(text string) bool { return len(utf16.Encode([]rune(text))) <= maxText }

// cut shortens a text so that it fits.
func cut(text string) string {
	if fits(text) {
		return text
	}
	return string(utf16.Decode(utf16.Encode([]rune(text))[:maxText-10])) + " … (cut)"
}
