package providertest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// events writes a stream of server-sent events.
type events struct {
	ctx     context.Context
	w       http.ResponseWriter
	left    int  // bytes until the stream breaks off
	bounded bool // the stream breaks off
	broken  bool
}

func (e *events) raw(text string) {
	if e.broken || e.ctx.Err() != nil {
		return
	}
	if e.bounded && len(text) >= e.left {
		text, e.broken = text[:e.left], true
	}
	e.left -= len(text)
	if _, err := e.w.Write([]byte(text)); err != nil {
		e.broken = true
	}
	_ = http.NewResponseController(e.w).Flush() // a lost connection shows at the next write
}

type object = map[string]any

func (e *events) data(name string, v object) {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		text = []byte(err.Error()) // the client reports a stream that cannot be read
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	e.raw(name + "data: " + string(text) + "\n\n")
}

// stall waits for Stall and reports whether the stream continues.
func (e *events) stall(t Turn) bool {
	if t.Stall != nil {
		select {
		case <-t.Stall:
		case <-e.ctx.Done():
			e.broken = true
			return false
		}
	}
	return !t.Truncate
}

func (t Turn) usage() Usage {
	if t.Usage == nil {
		return Usage{Input: 10, Output: 5, Total: 15}
	}
	return *t.Usage
}

func (c ToolCall) id(i int) string {
	if c.ID != "" {
		return c.ID
	}
	return fmt.Sprintf("call_%d", i)
}

// cut halves the last call of a turn that ends early.
func (t Turn) cut() Turn {
	if last := len(t.ToolCalls) - 1; t.Cut != "" && last >= 0 {
		t.ToolCalls = slices.Clone(t.ToolCalls)
		t.ToolCalls[last].Arguments = t.ToolCalls[last].Arguments[:len(t.ToolCalls[last].Arguments)/2]
	}
	return t
}

// chat writes a turn as Chat Completions.
func (e *events) chat(t Turn) {
	t = t.cut()
	chunk := func(choices []any, usage any) {
		o := object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "scripted",
			"choices": choices}
		if usage != nil {
			o["usage"] = usage
		}
		e.data("", o)
	}
	delta := func(d object, finish any) {
		chunk([]any{object{"index": 0, "delta": d, "finish_reason": finish}}, nil)
	}
	delta(object{"role": "assistant", "content": ""}, nil)
	for _, piece := range t.Reasoning {
		delta(object{"reasoning": piece}, nil)
	}
	for _, piece := range t.Text {
		delta(object{"content": piece}, nil)
	}
	if !e.stall(t) {
		return
	}
	for i, c := range t.ToolCalls {
		delta(object{"tool_calls": []any{object{
			"index": i, "id": c.id(i), "type": "function",
			"function": object{"name": c.Name, "arguments": c.Arguments},
		}}}, nil)
	}
	finish := "stop"
	if len(t.ToolCalls) > 0 {
		finish = "tool_calls"
	}
	delta(object{}, cmp.Or(t.Cut, finish))
	if !t.NoUsage {
		u := t.usage()
		chunk([]any{}, object{
			"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Total,
			"prompt_tokens_details":     object{"cached_tokens": u.Cached},
			"completion_tokens_details": object{"reasoning_tokens": u.Reasoning},
		})
	}
	e.raw("data: [DONE]\n\n")
}

// responses writes a turn as Responses.
func (e *events) responses(t Turn) {
	t = t.cut()
	sequence := 0
	event := func(name string, o object) {
		o["type"], o["sequence_number"] = name, sequence
		sequence++
		e.data(name, o)
	}
	response := func(status string) object {
		return object{"id": "resp_1", "object": "response", "created_at": 0, "status": status, "model": "scripted",
			"output": []any{}}
	}
	index := 0
	done := func(item object) {
		event("response.output_item.done", object{"output_index": index, "item": item})
		index++
	}
	event("response.created", object{"response": response("in_progress")})
	if len(t.Reasoning) > 0 {
		const item = "rs_1"
		event("response.reasoning_summary_part.added", object{
			"item_id": item, "output_index": 0, "summary_index": 0, "part": object{"type": "summary_text", "text": ""},
		})
		for _, piece := range t.Reasoning {
			event("response.reasoning_summary_text.delta",
				object{"item_id": item, "output_index": 0, "summary_index": 0, "delta": piece})
		}
		done(object{"type": "reasoning", "id": item, "encrypted_content": "c2NyaXB0ZWQ=", "summary": []any{
			object{"type": "summary_text", "text": strings.Join(t.Reasoning, "")},
		}})
	}
	for _, piece := range t.Text {
		event("response.output_text.delta",
			object{"item_id": "msg_1", "output_index": index, "content_index": 0, "delta": piece})
	}
	if len(t.Text) > 0 {
		done(object{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []any{
			object{"type": "output_text", "text": strings.Join(t.Text, ""), "annotations": []any{}},
		}})
	}
	if !e.stall(t) {
		return
	}
	for i, c := range t.ToolCalls {
		id := c.id(i)
		done(object{"type": "function_call", "id": "fc_" + id, "call_id": id, "name": c.Name, "arguments": c.Arguments,
			"status": "completed"})
	}
	if t.Failed != nil {
		o := response("failed")
		o["error"] = object{"code": t.Failed.Code, "message": t.Failed.Message}
		event("response.failed", object{"response": o})
		return
	}
	o, end := response("completed"), "response.completed"
	if t.Cut != "" {
		o, end = response("incomplete"), "response.incomplete"
		o["incomplete_details"] = object{"reason": strings.Replace(t.Cut, "length", "max_output_tokens", 1)}
	}
	if !t.NoUsage {
		u := t.usage()
		o["usage"] = object{
			"input_tokens": u.Input, "output_tokens": u.Output, "total_tokens": u.Total,
			"input_tokens_details":  object{"cached_tokens": u.Cached},
			"output_tokens_details": object{"reasoning_tokens": u.Reasoning},
		}
	}
	event(end, object{"response": o})
}
