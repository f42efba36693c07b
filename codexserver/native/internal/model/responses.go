package model

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// responsesWire is the Responses API.
type responsesWire struct{ form }

func (responsesWire) path() string { return responsesPath }

func (responsesWire) headers(h http.Header, req *Request) {
	h.Set("OpenAI-Beta", "responses=experimental")
	if req.ConversationID != "" {
		// Not canonical on purpose: the names have underscores.
		h["conversation_id"] = []string{req.ConversationID}
		h["session_id"] = []string{req.ConversationID}
	}
}

// usualRequest is the room in bytes for the first request of a conversation.
const usualRequest = 8 << 10

// responsesBody is a request, but for its input, which comes last: another pass over that would take as long as the request.
type responsesBody struct {
	Model             string          `json:"model"`
	Instructions      string          `json:"instructions"`
	Tools             []responsesTool `json:"tools"`
	ToolChoice        string          `json:"tool_choice,omitzero"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls,omitzero"`
	Reasoning         **Reasoning     `json:"reasoning,omitzero"`
	Store             *bool           `json:"store,omitzero"`
	Stream            bool            `json:"stream"`
	Include           *[]string       `json:"include,omitzero"`
	PromptCacheKey    string          `json:"prompt_cache_key,omitzero"`
	Text              responsesText   `json:"text,omitzero"`
}

type responsesText struct {
	Verbosity string        `json:"verbosity,omitzero"`
	Format    *schemaFormat `json:"format,omitzero"`
}

type responsesTool struct {
	Type string `json:"type"`
	*functionTool
	Settings map[string]any `json:",embed"`
}

func (w responsesWire) body(req *Request) ([]byte, error) {
	first, items := w.history(req)
	body := responsesBody{Model: req.Model, Instructions: first, Stream: !w.has(noStream)}
	tools, forbidden := w.toolsOf(req, w.has(noToolChoice|extras))
	if !w.has(extras) {
		thinking, include := req.Reasoning, []string(nil)
		if w.has(effort) {
			thinking = nil
		}
		if thinking != nil {
			include = []string{"reasoning.encrypted_content"}
		}
		body.ToolChoice, body.ParallelToolCalls, body.Store = "auto", &req.SeveralCalls, new(false)
		body.Reasoning, body.Include, body.PromptCacheKey = &thinking, &include, req.ConversationID
		body.Text.Verbosity = req.Verbosity
	}
	if forbidden {
		body.ToolChoice = "none"
	} else if req.NoCalls {
		body.ToolChoice = ""
	}
	if w.holds(req) {
		format := formatOf(req)
		format.Type, body.Text.Format = "json_schema", &format
	}
	for _, t := range tools {
		tool := responsesTool{Type: t.Type, Settings: t.Settings}
		if t.Type == "" || t.Type == "function" {
			tool = responsesTool{Type: "function", functionTool: w.function(t)}
		}
		body.Tools = append(body.Tools, tool)
	}
	buf := bytes.NewBuffer(make([]byte, 0, usualRequest))
	err := json.MarshalWrite(buf, body, jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	b := append(bytes.TrimSuffix(buf.Bytes(), []byte("}")), `,"input":[`...)
	begin := len(b)
	for _, item := range items {
		if r, ok := item.(protocol.ReasoningItem); ok {
			switch plain := r.EncryptedContent != nil && *r.EncryptedContent == ""; {
			case r.EncryptedContent == nil || plain && len(r.Content) == 0:
				continue // the provider cannot read it
			case !plain:
				r.Content = nil
			}
			item = r
		}
		if len(b) > begin {
			b = append(b, ',')
		}
		if b, err = protocol.AppendItem(b, item); err != nil {
			return nil, err
		}
	}
	return append(b, "]}"...), nil
}

func (responsesWire) read(to *attempt) (*Response, error) {
	to.emit(protocol.TokenCount{RateLimits: rateLimits(to.header)})
	a := &responsesAnswer{from: to, out: &Response{}, seen: map[string]bool{}}
	for e := range to.events {
		if !e.done {
			whole, err := a.event(e)
			if err == nil {
				err = to.held.says(a.size())
			}
			if whole || err != nil {
				return a.out, err
			}
		} else if len(a.out.Items)+len(a.open)+a.text.Len() > 0 { // from servers that mix the two wires
			return a.out, a.end("response.done", value{})
		}
	}
	return nil, to.closed("stream closed before response.completed")
}

// responsesAnswer collects the events of a response.
type responsesAnswer struct {
	from  *attempt
	out   *Response
	calls int
	items int             // bytes of the items that have ended
	text  pieces          // of a message that has not ended
	begun string          // the text that the beginning of a message had
	phase string          // of that message
	open  []*openCall     // whose items have not ended
	seen  map[string]bool // the types of items that have ended
}

// openCall is a call that comes in pieces.
type openCall struct {
	custom    bool
	item, at  string // the id and the index of its item
	id, name  string
	first     string // the arguments that its beginning had
	arguments pieces
	whole     bool
}

// input returns the arguments that have come.
func (c *openCall) input() string { return cmp.Or(c.arguments.end(), c.first) }

// event adds an event. whole is true for the last one.
func (a *responsesAnswer) event(e event) (whole bool, err error) {
	kind, response := cmp.Or(e.at("type").text(), string(e.title)), e.at("response")
	if !response.has() {
		response = e.value
	}
	if e.body && e.at("output").has() { // a response that is no stream
		kind, response = "response."+cmp.Or(e.at("status").text(), "completed"), e.value
	}
	if e.open && kind != "response.completed" && kind != "response.incomplete" && kind != "response.done" && !e.body {
		return false, a.from.trouble(e) // a part of it may be missing
	}
	switch kind {
	case "response.output_text.delta", "response.refusal.delta":
		if piece := a.text.say(e.at("delta")); piece != "" {
			a.from.emit(protocol.AgentMessageDelta{Delta: piece})
		}
	case "response.output_text.done", "response.refusal.done":
		a.wholeText(cmp.Or(e.at("text").text(), e.at("refusal").text()))
	case "response.content_part.done":
		text, _ := e.at("part").content()
		a.wholeText(text)
	case "response.reasoning_summary_text.delta":
		a.from.emit(protocol.AgentReasoningDelta{Delta: e.at("delta").text()})
	case "response.reasoning_text.delta":
		a.from.emit(protocol.AgentReasoningRawContentDelta{Delta: e.at("delta").text()})
	case "response.reasoning_summary_part.added":
		a.from.emit(protocol.AgentReasoningSectionBreak{})
	case "response.output_item.added":
		item := e.at("item")
		switch id, kind := item.at("id").text(), item.at("type").text(); kind {
		case "web_search_call":
			a.from.emit(protocol.WebSearchBegin{CallID: id})
		case "function_call", "custom_tool_call":
			c := a.call(id, e)
			c.custom, c.id, c.name, c.first = kind == "custom_tool_call", item.at("call_id").text(),
				item.at("name").text(), item.at("arguments").text()
		case "message":
			a.begun, _ = item.content()
			a.phase = phaseOf(item)
		}
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		a.call("", e).arguments.add(e.at("delta"))
	case "response.function_call_arguments.done", "response.custom_tool_call_input.done":
		c := a.call("", e)
		c.id, c.name = cmp.Or(c.id, e.at("call_id").text()), cmp.Or(c.name, e.at("name").text())
		c.arguments, c.whole = pieces{}, true
		c.arguments.WriteString(cmp.Or(e.at("arguments").text(), e.at("input").text()))
	case "response.output_item.done":
		return false, a.item(e.at("item"), e.at("output_index"))
	case "response.completed", "response.incomplete", "response.done":
		return true, a.end(kind, response)
	case "response.failed", "response.error", "error":
		return false, a.from.failure(e.raw)
	default:
		if !strings.HasPrefix(kind, "response.") {
			return false, a.from.trouble(e)
		}
	}
	if len(a.open)+a.calls > maxCalls {
		return false, tooMuch("it", maxCalls, "tool calls")
	}
	return false, nil
}

// wholeText adds the text of a part that has ended, unless its deltas had it.
func (a *responsesAnswer) wholeText(text string) {
	if !strings.HasSuffix(a.text.end(), text) {
		a.text.WriteString(text)
		a.from.emit(protocol.AgentMessageDelta{Delta: text})
	}
}

// call returns the call of an event, by the id or the index of its item. begins is the item that the event
// begins, if it does. Some servers give an item another id with each event.
func (a *responsesAnswer) call(begins string, e event) *openCall {
	item, at := cmp.Or(begins, e.at("item_id").text()), e.at("output_index").text()
	if i := slices.IndexFunc(a.open, func(c *openCall) bool { return item != "" && c.item == item }); i >= 0 {
		return a.open[i]
	}
	for _, c := range slices.Backward(a.open) {
		if c.at == at && (item == "" || c.item == "" || begins == "" && at != "") {
			return c
		}
	}
	c := &openCall{item: item, at: at}
	a.open = append(a.open, c)
	return c
}

// item adds an item that has ended.
func (a *responsesAnswer) item(v, index value) error {
	a.items += len(v.raw)
	id, callID, pieces := v.at("id").text(), v.at("call_id").text(), ""
	a.open = slices.DeleteFunc(a.open, func(c *openCall) bool {
		ended := callID != "" && c.id == callID || id != "" && c.item == id || index.has() && c.at == index.text()
		if ended {
			pieces = c.input()
		}
		return ended
	})
	switch v.at("type").text() {
	case "message": // whose content some servers write as a text, or as a refusal
		text, _ := v.content()
		said := assistantMessage(cmp.Or(text, a.text.end()))
		said.Phase = phaseOf(v)
		return a.add(said)
	case "function_call": // whose arguments some servers write as the object
		arguments := argumentsOf(cmp.Or(v.at("arguments").text(), pieces))
		return a.add(protocol.FunctionCallItem{Name: v.at("name").text(), Arguments: arguments, CallID: callID})
	}
	item, err := protocol.ParseItem(bytes.ToValidUTF8(v.raw, []byte("\uFFFD")))
	switch whole := item.(type) {
	case protocol.CustomToolCallItem:
		whole.Input = cmp.Or(whole.Input, pieces)
		item = whole
	case protocol.LocalShellCallItem:
		whole.CallID = cmp.Or(whole.CallID, id)
		item = whole
	}
	if err != nil {
		return broken(fmt.Sprintf("item cannot be read: %v", err))
	}
	return a.add(item)
}

// size returns how many bytes the answer says so far.
func (a *responsesAnswer) size() int {
	n := a.items + a.text.Len() + len(a.begun)
	for _, c := range a.open {
		n += len(c.first) + c.arguments.Len()
	}
	return n
}

// phaseOf returns the phase of a message.
func phaseOf(message value) string {
	const most = 64
	if phase := message.at("phase"); phase.kind() == '"' && len(phase.raw) <= most {
		return phase.text()
	}
	return ""
}

func (a *responsesAnswer) add(item protocol.ResponseItem) error {
	items, added := addOnce(a.out.Items, item)
	if !added {
		return nil
	}
	if len(items) > maxItems {
		return tooMuch("it", maxItems, "items")
	}
	if isCall(item) {
		if a.calls++; a.calls > maxCalls {
			return tooMuch("it", maxCalls, "tool calls")
		}
	}
	if _, ok := item.(protocol.MessageItem); ok {
		a.text, a.phase = pieces{}, ""
	}
	a.out.Items, a.seen[item.ItemType()] = items, true
	a.from.emit(ItemDone{item})
	return nil
}

// end adds what only the end of the response has, or only its deltas.
func (a *responsesAnswer) end(kind string, end value) error {
	a.out.Usage = end.at("usage").usage()
	reason := end.at("incomplete_details").word()
	why, err := cutOf(reason, a.from.client.redact)
	if err != nil {
		return err
	}
	switch status := end.at("status").text(); {
	case end.at("error").fails():
		return a.from.failure(end.raw)
	case why != "":
	case kind == "response.incomplete" || status == "incomplete":
		why = Cut(cmp.Or(shorten(a.from.client.redact(reason)), "without a reason"))
	case !slices.Contains([]string{"", "completed", "in_progress", "queued"}, status):
		why = Cut(shorten(a.from.client.redact(status)))
	}
	a.out.Cut = why
	seen := maps.Clone(a.seen)
	for _, v := range end.at("output").list() {
		kind, id := v.at("type").text(), v.at("call_id").text()
		known := slices.ContainsFunc(a.out.Items, func(item protocol.ResponseItem) bool {
			call, ok := CallOf(item)
			return ok && (call.ID == id || id == "" && seen[kind])
		})
		call := strings.HasSuffix(kind, "_call") && kind != "web_search_call"
		if !known && (call || !seen[kind]) {
			if err := a.item(v, value{}); err != nil {
				return err
			}
		}
	}
	if a.text.end() == "" && !a.seen[(protocol.MessageItem{}).ItemType()] {
		alone, _ := end.at("output_text").content()
		a.text.WriteString(cmp.Or(alone, a.begun))
	}
	if a.text.Len() > 0 { // of a message whose end was not sent
		said := assistantMessage(a.text.String())
		said.Phase = a.phase
		if err := a.add(said); err != nil {
			return err
		}
	}
	for _, c := range a.open { // calls whose end was not sent, if they are whole
		var item protocol.ResponseItem
		switch input := c.input(); {
		case a.out.Cut != "" || c.name == "":
			continue
		case c.custom && c.whole:
			item = protocol.CustomToolCallItem{CallID: c.id, Name: c.name, Input: input}
		case !c.custom && (c.whole || jsontext.Value(input).IsValid()):
			item = protocol.FunctionCallItem{CallID: c.id, Name: c.name, Arguments: argumentsOf(input)}
		default:
			continue
		}
		if err := a.add(item); err != nil {
			return err
		}
	}
	return nil
}
