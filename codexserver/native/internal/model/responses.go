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

// responsesTail is what follows the history in a request.
type responsesTail struct {
	Tools             []responsesTool `json:"tools"`
	ToolChoice        string          `json:"tool_choice,omitzero"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls,omitzero"`
	Reasoning         **Reasoning     `json:"reasoning,omitzero"`
	Store             *bool           `json:"store,omitzero"`
	Stream            bool            `json:"stream"`
	Include           *[]string       `json:"include,omitzero"`
	PromptCacheKey    string          `json:"prompt_cache_key,omitzero"`
	Text              *responsesText  `json:"text,omitzero"`
}

type responsesText struct {
	Verbosity string           `json:"verbosity,omitzero"`
	Format    *responsesFormat `json:"format,omitzero"`
}

type responsesFormat struct {
	Type   string         `json:"type"`
	Name   string         `json:"name"`
	Strict bool           `json:"strict"`
	Schema jsontext.Value `json:"schema"`
}

type responsesTool struct {
	Type        string         `json:"type"`
	Name        string         `json:"name,omitzero"`
	Description string         `json:"description,omitzero"`
	Strict      *bool          `json:"strict,omitzero"`
	Parameters  jsontext.Value `json:"parameters,omitzero"`
	*WebSearch
}

func (w responsesWire) body(req *Request) ([]byte, error) {
	instructions, items := req.Instructions, req.Items
	if w.has(rolesInARow) {
		instructions, items = systemText(req), alternating(items)
	}
	if w.has(userAfterTool) {
		items = apart(items)
	}
	items, instructions = w.withIDs(items), w.instructions(req, instructions)
	b := appendString(append(make([]byte, 0, sizeOf(req)), `{"model":`...), req.Model)
	b = appendString(append(b, `,"instructions":`...), instructions)
	b = append(b, `,"input":[`...)
	first := true
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
		if !first {
			b = append(b, ',')
		}
		first = false
		var err error
		if b, err = protocol.AppendItem(b, item); err != nil {
			return nil, err
		}
	}
	tail := responsesTail{Stream: true}
	if !w.has(extras) {
		thinking, include := req.Reasoning, []string(nil)
		if w.has(effort) {
			thinking = nil
		}
		if thinking != nil {
			include = []string{"reasoning.encrypted_content"}
		}
		tail = responsesTail{
			ToolChoice: "auto", ParallelToolCalls: &req.SeveralCalls, Reasoning: &thinking, Store: new(false), Stream: true,
			Include: &include, PromptCacheKey: req.ConversationID,
		}
		if req.Verbosity != "" {
			tail.Text = &responsesText{Verbosity: req.Verbosity}
		}
	}
	if req.OutputSchema != nil && !w.has(answerSchema) {
		if tail.Text == nil {
			tail.Text = &responsesText{}
		}
		tail.Text.Format = &responsesFormat{Type: "json_schema", Name: schemaName, Strict: true, Schema: jsontext.Value(req.OutputSchema)}
	}
	for _, t := range w.offered(req.Tools) {
		tail.Tools = append(tail.Tools, w.tool(t))
	}
	rest, err := json.Marshal(tail, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, err
	}
	return append(append(b, "],"...), rest[1:]...), nil
}

func (w responsesWire) tool(t Tool) responsesTool {
	if t.Type != "" && t.Type != "function" {
		return responsesTool{Type: t.Type, WebSearch: t.WebSearch}
	}
	tool := responsesTool{Type: "function", Name: t.Name, Description: t.Description, Parameters: w.schema(t)}
	if !w.has(strictMember) {
		tool.Strict = new(false)
	}
	return tool
}

// responsesEvent has the members of most of the events that are read.
type responsesEvent struct {
	Type     string         `json:"type"`
	Delta    jsontext.Value `json:"delta"`
	Item     jsontext.Value `json:"item"`
	Response jsontext.Value `json:"response"`
}

// responsesPart has the members of the others.
type responsesPart struct {
	Text, Refusal       jsontext.Value
	ItemID, OutputIndex jsontext.Value
	CallID, Name        jsontext.Value
	Arguments, Input    jsontext.Value
	Output, Status      jsontext.Value // of a response that is no stream
	Part                jsontext.Value
}

func (e sseEvent) part() (p responsesPart) {
	take(e.data, &p, json.MatchCaseInsensitiveNames(true))
	return p
}

// responsesEnd is a whole response.
type responsesEnd struct {
	Usage      jsontext.Value   `json:"usage"`
	Text       jsontext.Value   `json:"output_text"`
	Error      jsontext.Value   `json:"error"`
	Status     jsontext.Value   `json:"status"`
	Output     []jsontext.Value `json:"output"`
	Incomplete jsontext.Value   `json:"incomplete_details"`
}

func (responsesWire) read(s *stream) (*Response, error) {
	s.emit(Event{Type: RateLimitsRead, RateLimits: rateLimits(s.header)})
	a := &responsesAnswer{stream: s, out: &Response{}, seen: map[string]bool{}}
	for {
		e, done, err := s.object()
		switch {
		case done && a.any(): // from servers that mix the two wires
			return a.out, a.end("response.done", nil)
		case done:
			continue
		case err != nil:
			return nil, s.closed(err, "stream closed before response.completed")
		}
		var event responsesEvent
		if !take(e.data, &event) {
			if err := s.unread(e); err != nil {
				return nil, err
			}
			continue
		}
		if event.Type == "" {
			event.Type = string(e.name)
		}
		if !has(event.Response) {
			event.Response = e.data
		}
		if e.body {
			if p := e.part(); has(p.Output) {
				event.Type, event.Response = "response."+cmp.Or(textOf(p.Status), "completed"), e.data
			}
		}
		if whole, err := a.event(&event, e); whole || err != nil {
			return a.out, err
		}
	}
}

// responsesAnswer collects the events of a response.
type responsesAnswer struct {
	*stream
	out   *Response
	calls int
	text  pieces          // of a message that has not ended
	begun string          // the text that the beginning of a message had
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

// event adds an event. whole is true for the last one.
func (a *responsesAnswer) event(event *responsesEvent, e sseEvent) (whole bool, err error) {
	kind := event.Type
	if e.open && kind != "response.completed" && kind != "response.incomplete" && kind != "response.done" && !e.body {
		return false, a.trouble(e) // a part of it may be missing
	}
	switch kind {
	case "response.output_text.delta", "response.refusal.delta":
		if piece := a.text.add(quoted(event.Delta)); piece != "" {
			a.emit(Event{Type: TextDelta, Text: piece})
		}
	case "response.output_text.done", "response.refusal.done":
		p := e.part()
		a.wholeText(cmp.Or(textOf(p.Text), textOf(p.Refusal)))
	case "response.content_part.done":
		text, _ := contentOf(e.part().Part, 0)
		a.wholeText(text)
	case "response.reasoning_summary_text.delta":
		a.emit(Event{Type: ReasoningDelta, Text: textOf(event.Delta)})
	case "response.reasoning_text.delta":
		a.emit(Event{Type: RawReasoningDelta, Text: textOf(event.Delta)})
	case "response.reasoning_summary_part.added":
		a.emit(Event{Type: ReasoningSection})
	case "response.output_item.added":
		switch item := headOf(event.Item); item.Type {
		case "web_search_call":
			a.emit(Event{Type: WebSearchStarted, CallID: item.ID})
		case "function_call", "custom_tool_call":
			c := a.call(item.ID, e.part())
			c.custom, c.id, c.name, c.first = item.Type == "custom_tool_call", item.CallID, item.Name, item.Arguments
		case "message":
			a.begun, _ = contentOf(event.Item, 0)
		}
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		a.call("", e.part()).arguments.add(event.Delta)
	case "response.function_call_arguments.done", "response.custom_tool_call_input.done":
		p := e.part()
		c := a.call("", p)
		c.id, c.name = cmp.Or(c.id, textOf(p.CallID)), cmp.Or(c.name, textOf(p.Name))
		c.arguments, c.whole = pieces{}, true
		c.arguments.WriteString(cmp.Or(textOf(p.Arguments), textOf(p.Input)))
	case "response.output_item.done":
		return false, a.item(event.Item, e.part().OutputIndex)
	case "response.completed", "response.incomplete", "response.done":
		return true, a.end(kind, event.Response)
	case "response.failed", "response.error", "error":
		return false, a.failure(e.data)
	default:
		if !strings.HasPrefix(kind, "response.") {
			return false, a.trouble(e)
		}
	}
	if len(a.open)+a.calls > maxCalls {
		return false, a.tooMany()
	}
	return false, nil
}

// wholeText adds the text of a part that has ended, unless its deltas had it.
func (a *responsesAnswer) wholeText(text string) {
	if a.text.end(); !strings.HasSuffix(a.text.String(), text) {
		a.text.WriteString(text)
		a.emit(Event{Type: TextDelta, Text: text})
	}
}

// any reports whether something of an answer has come.
func (a *responsesAnswer) any() bool {
	return len(a.out.Items)+len(a.open)+a.text.Len() > 0
}

func (a *responsesAnswer) tooMany() error {
	return &LimitError{What: fmt.Sprintf("it has more than %d tool calls", maxCalls)}
}

// call returns the call of an event, by the id or the index of its item. begins is the item that the event
// begins, if it does. Some servers give an item another id with each event.
func (a *responsesAnswer) call(begins string, p responsesPart) *openCall {
	item, at := cmp.Or(begins, textOf(p.ItemID)), textOf(p.OutputIndex)
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
func (a *responsesAnswer) item(raw, index jsontext.Value) error {
	head := headOf(raw)
	var pieces string // that came before its end
	a.open = slices.DeleteFunc(a.open, func(c *openCall) bool {
		ended := head.CallID != "" && c.id == head.CallID || head.ID != "" && c.item == head.ID || has(index) && c.at == textOf(index)
		if ended {
			c.arguments.end()
			pieces = cmp.Or(c.arguments.String(), c.first)
		}
		return ended
	})
	item, err := responsesItem(raw, head)
	if err != nil {
		return &StreamError{Reason: err.Error()}
	}
	switch whole := item.(type) {
	case protocol.MessageItem:
		if a.text.end(); whole.Content[0].Text == "" {
			item = assistantMessage(a.text.String())
		}
	case protocol.FunctionCallItem:
		whole.Arguments = argumentsOf(cmp.Or(whole.Arguments, pieces))
		item = whole
	case protocol.CustomToolCallItem:
		whole.Input = cmp.Or(whole.Input, pieces)
		item = whole
	}
	return a.add(item)
}

func (a *responsesAnswer) add(item protocol.ResponseItem) error {
	items, added := addOnce(a.out.Items, item)
	if !added {
		return nil
	}
	if isCall(item) {
		if a.calls++; a.calls > maxCalls {
			return a.tooMany()
		}
	}
	if _, ok := item.(protocol.MessageItem); ok {
		a.text = pieces{}
	}
	a.out.Items, a.seen[item.ItemType()] = items, true
	a.emit(Event{Type: ItemDone, Item: item})
	return nil
}

// end adds what only the end of the response has, or only its deltas.
func (a *responsesAnswer) end(kind string, raw jsontext.Value) error {
	var end responsesEnd
	take(raw, &end)
	a.out.Usage = usageOf(end.Usage)
	reason := wordOf(end.Incomplete)
	why, err := cutOf(reason, a.hide)
	if err != nil {
		return err
	}
	switch status := textOf(end.Status); {
	case fails(end.Error, 0):
		return a.failure(raw)
	case why != "":
	case kind == "response.incomplete" || status == "incomplete":
		why = Cut(cmp.Or(shorten(a.hide(reason)), "without a reason"))
	case !slices.Contains([]string{"", "completed", "in_progress", "queued"}, status):
		why = Cut(shorten(a.hide(status)))
	}
	a.out.Cut = why
	seen := maps.Clone(a.seen)
	for _, raw := range end.Output {
		head := headOf(raw)
		known := slices.ContainsFunc(a.out.Items, func(item protocol.ResponseItem) bool {
			id, ok := callID(item)
			return ok && (id == head.CallID || head.CallID == "" && seen[head.Type])
		})
		if !known && (head.call() || !seen[head.Type]) {
			if err := a.item(raw, nil); err != nil {
				return err
			}
		}
	}
	text := (protocol.MessageItem{}).ItemType()
	if a.text.end(); a.text.Len() == 0 && !a.seen[text] {
		alone, _ := contentOf(end.Text, 0)
		a.text.WriteString(cmp.Or(alone, a.begun))
	}
	if a.text.Len() > 0 { // of a message whose end was not sent
		if err := a.add(assistantMessage(a.text.String())); err != nil {
			return err
		}
	}
	for _, c := range a.open {
		if err := a.addOpen(c); err != nil {
			return err
		}
	}
	return nil
}

// addOpen adds a call whose item has not ended, if it is whole.
func (a *responsesAnswer) addOpen(c *openCall) error {
	c.arguments.end()
	input := cmp.Or(c.arguments.String(), c.first)
	switch {
	case a.out.Cut != "" || c.name == "":
		return nil
	case c.custom && c.whole:
		return a.add(protocol.CustomToolCallItem{CallID: c.id, Name: c.name, Input: input})
	case !c.custom && (c.whole || jsontext.Value(input).IsValid()):
		return a.add(protocol.FunctionCallItem{CallID: c.id, Name: c.name, Arguments: argumentsOf(input)})
	}
	return nil
}

type itemHead struct {
	Type, ID, CallID, Name, Arguments string
}

func (h itemHead) call() bool {
	return strings.HasSuffix(h.Type, "_call") && h.Type != "web_search_call"
}

// headOf returns the head of an item. Its type is empty if it is none.
func headOf(raw jsontext.Value) itemHead {
	var h struct{ Type, ID, CallID, Name, Arguments jsontext.Value }
	take(raw, &h, json.MatchCaseInsensitiveNames(true))
	return itemHead{Type: textOf(h.Type), ID: textOf(h.ID), CallID: textOf(h.CallID), Name: textOf(h.Name), Arguments: textOf(h.Arguments)}
}

// responsesItem decodes a whole item.
func responsesItem(raw jsontext.Value, head itemHead) (protocol.ResponseItem, error) {
	if head.Type == "message" { // whose content some servers write as a text, or as a refusal
		text, _ := contentOf(raw, 0)
		return assistantMessage(text), nil
	}
	if head.Type == "function_call" { // whose arguments some servers write as the object
		return protocol.FunctionCallItem{Name: head.Name, Arguments: head.Arguments, CallID: head.CallID}, nil
	}
	item, err := protocol.ParseItem(bytes.ToValidUTF8(raw, []byte("\uFFFD")))
	if err != nil {
		return nil, fmt.Errorf("item cannot be read: %w", err)
	}
	if shell, ok := item.(protocol.LocalShellCallItem); ok {
		shell.CallID = cmp.Or(shell.CallID, head.ID)
		return shell, nil
	}
	return item, nil
}
