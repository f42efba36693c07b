package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// A call is a tools/call or prompts/get. Its function asks for what it needs and
// runs from the beginning in each round, until everything is answered.
type call struct {
	meta      *modern.RequestMetaObject
	client    elicit.Client
	arguments json.RawMessage

	server    *server
	stateless bool
	what      string                     // the method, name and arguments
	answers   map[string]json.RawMessage // of the rounds before this one
	asks      modern.InputRequests       // in this one
	err       error
}

// newCall begins a call, or continues the one that the state belongs to.
func (s *server) newCall(
	ctx context.Context, method, name string, args json.RawMessage, meta *modern.RequestMetaObject, state *string,
) (*call, error) {
	same := jsontext.Value(args).Clone()
	if err := same.Canonicalize(); err != nil && len(same) > 0 { // the order of members does not matter
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "/arguments: %v", err)
	}
	raw, err := modern.Encode(meta)
	if err != nil {
		return nil, fmt.Errorf("metadata of the request: %w", err)
	}
	c := &call{
		meta: meta, client: elicit.RequestClient(raw), arguments: args,
		server: s, what: method + " " + name + " " + string(same), asks: modern.InputRequests{},
	}
	if state != nil {
		c.answers, err = s.rounds.take(*state, c.what, originOf(ctx).responses)
	}
	return c, err
}

// outcome is what became of a question, with the form's content.
type outcome struct {
	elicit.Outcome
	content map[string]modern.ElicitValue
}

// field returns a text of the form.
func (o outcome) field(name string) string {
	text, _ := o.content[name].Str()
	return text
}

// elicit returns what became of a question; ok is false while it is open. A client
// that cannot be asked has decided at once.
func (c *call) elicit(key string, q *elicit.Question) (out outcome, ok bool) {
	if response, ok := c.answer(key); ok {
		return read(q, response), true
	}
	if !c.client.CanAsk() {
		return outcome{Outcome: q.ReadError(elicit.ErrUnsupported, nil)}, true
	}
	request, err := inputRequest(q, c.client)
	if err != nil {
		c.err = err
		return outcome{}, false
	}
	c.asks[key] = request
	return outcome{}, false
}

// answer returns what answers a key. A response that is not an object does not count.
func (c *call) answer(key string) (response json.RawMessage, ok bool) {
	response = c.answers[key]
	return response, jsontext.Value(response).Kind() == '{'
}

// sample has the client's model answer a prompt; ok is false while it has not. A client
// that cannot is not asked.
func (c *call) sample(key, prompt string) (text string, ok bool) {
	if c.meta.ClientCapabilities.Sampling == nil {
		return "", true
	}
	answer, ok := c.answer(key)
	if !ok {
		c.asks[key] = &modern.CreateMessageRequest{Params: modern.CreateMessageRequestParams{
			MaxTokens: 100,
			Messages:  []modern.SamplingMessage{{Role: modern.RoleUser, Content: &modern.TextContent{Text: prompt}}},
		}}
		return "", false
	}
	var message modern.CreateMessageResult
	if err := modern.Decode(answer, &message); err != nil {
		return "", true
	}
	if block, ok := message.Content.(*modern.TextContent); ok {
		text = block.Text
	}
	return text, true
}

// roots asks for the client's roots in the same way.
func (c *call) roots(key string) (uris []string, ok bool) {
	if c.meta.ClientCapabilities.Roots == nil {
		return nil, true
	}
	answer, ok := c.answer(key)
	if !ok {
		c.asks[key] = &modern.ListRootsRequest{}
		return nil, false
	}
	var list modern.ListRootsResult
	if err := modern.Decode(answer, &list); err != nil {
		return nil, true
	}
	for _, root := range list.Roots {
		uris = append(uris, root.URI)
	}
	return uris, true
}

// unanswered ends this round with what was asked in it.
func (c *call) unanswered() (*modern.InputRequiredResult, error) {
	if c.err != nil {
		return nil, c.err
	}
	r := &modern.InputRequiredResult{Meta: identity, InputRequests: c.asks}
	if !c.stateless {
		r.RequestState = new(c.server.rounds.add(round{call: c.what, asked: c.asks, answers: c.answers}))
	}
	return r, nil
}

// inputRequest is the first half of a question.
func inputRequest(q *elicit.Question, client elicit.Client) (request modern.InputRequest, err error) {
	raw, err := q.InputRequest(client, nil)
	if err == nil {
		err = modern.Decode(raw, &request)
	}
	return request, err
}

// read is the second half.
func read(q *elicit.Question, response json.RawMessage) outcome {
	out := outcome{Outcome: q.ReadInputResponse(response, nil)}
	var answer modern.ElicitResult
	if err := modern.Decode(response, &answer); err == nil {
		out.content = answer.Content
	}
	return out
}
