package main

import "encoding/json"

type object = map[string]any

// content is what the line says and calls, as blocks of a message.
func (l line) content() (blocks []object) {
	if l.says != "" {
		blocks = append(blocks, object{"type": "text", "text": l.says})
	}
	for _, u := range l.calls {
		blocks = append(blocks, object{"type": "tool_use", "id": u.id, "name": u.tool, "input": u.input})
	}
	return blocks
}

func (l line) reason() string {
	if len(l.calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

func reply(content []object, reason any) object {
	return object{
		"id": "msg_scripted", "type": "message", "role": "assistant", "model": "claude-scripted", "content": content,
		"stop_reason": reason, "stop_sequence": nil,
		"usage": object{"input_tokens": 10, "output_tokens": 5},
	}
}

// events are the line as it is streamed.
func (l line) events() []object {
	all := []object{{"type": "message_start", "message": reply([]object{}, nil)}}
	for i, block := range l.content() {
		start, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": block["text"]}
		if block["type"] == "tool_use" {
			input, err := json.Marshal(block["input"])
			if err != nil {
				panic(err) // maps of strings
			}
			start = object{"type": "tool_use", "id": block["id"], "name": block["name"], "input": object{}}
			delta = object{"type": "input_json_delta", "partial_json": string(input)}
		}
		all = append(all,
			object{"type": "content_block_start", "index": i, "content_block": start},
			object{"type": "content_block_delta", "index": i, "delta": delta},
			object{"type": "content_block_stop", "index": i})
	}
	return append(all,
		object{"type": "message_delta", "delta": object{"stop_reason": l.reason(), "stop_sequence": nil}, "usage": object{"output_tokens": 5}},
		object{"type": "message_stop"})
}
