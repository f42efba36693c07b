//go:build claudecode

package claudecode

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
)

// claude is the model behind Claude Code: Anthropic's Messages API on loopback,
// which answers by script.
type claude struct {
	*httptest.Server

	mu    sync.Mutex
	lines []line
	asked []request
}

// line is a line of the script: to what contains heard it has an answer, once.
type line struct {
	heard  string
	answer func(heard request) answer
}

// answer is a text, or calls of tools.
type answer struct {
	says  string
	calls []use
}

// use is the call of a tool by the model.
type use struct {
	tool  string
	input object
}

// request is what Claude Code asked the model.
type request struct {
	body []byte
	// texts are what was said since the model spoke, with the results of tools;
	// newest is all of that.
	texts  []string
	newest string
	tools  []string
}

func newClaude() *claude {
	c := &claude{}
	c.Server = httptest.NewServer(c)
	return c
}

// script adds a line.
func (c *claude) script(heard string, answer func(request) answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line{heard, answer})
}

// requests are those of the conversation so far, oldest first. Claude Code also
// asks on the side, for a title for instance; such a request offers no tools.
func (c *claude) requests() []request {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []request
	for _, r := range c.asked {
		if len(r.tools) > 0 {
			all = append(all, r)
		}
	}
	return all
}

// received is what the model received, without Claude Code's own instructions.
func (c *claude) received() string {
	var all strings.Builder
	for i, r := range c.requests() {
		fmt.Fprintf(&all, "--- %d\n", i+1)
		for _, text := range r.texts {
			if len(text) < 4000 {
				fmt.Fprintln(&all, strings.TrimSpace(text))
			}
		}
	}
	return all.String()
}

// ServeHTTP implements [http.Handler].
func (c *claude) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusOK) // it checks whether the server is there
		return
	}
	if strings.HasSuffix(r.URL.Path, "/count_tokens") {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"input_tokens":10}`)
		return
	}
	asked, streams := read(body)
	answer := c.answer(asked)
	blocks, reason := answer.content()
	if !streams {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(reply(blocks, reason)) // fails only when the client has gone
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events(blocks, reason) {
		text, err := json.Marshal(e)
		if err != nil {
			panic(err) // maps of strings and numbers
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e["type"], text)
	}
}

// answer keeps a request and finds the line for it.
func (c *claude) answer(r request) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, r)
	if len(r.tools) == 0 {
		return answer{says: "Scripted"}
	}
	for i, l := range c.lines {
		if strings.Contains(r.newest, l.heard) {
			c.lines = append(c.lines[:i:i], c.lines[i+1:]...)
			return l.answer(r)
		}
	}
	return answer{says: "Noted."}
}

// read decodes the part of a request that the script needs.
func read(body []byte) (r request, streams bool) {
	var asked struct {
		Stream   bool
		Tools    []struct{ Name string }
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	_ = json.Unmarshal(body, &asked) // a body that is not a request has no messages
	r.body = body
	for _, t := range asked.Tools {
		r.tools = append(r.tools, t.Name)
	}
	// Reminders may follow what a person or a tool said as messages of the system.
	for _, m := range asked.Messages {
		if m.Role == "assistant" {
			r.texts = nil
			continue
		}
		r.texts = append(r.texts, texts(m.Content)...)
	}
	r.newest = strings.Join(r.texts, "\n")
	return r, asked.Stream
}

// texts are a string, or the texts of blocks and of the results in them.
func texts(raw json.RawMessage) (all []string) {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []string{s}
	}
	var blocks []struct {
		Text    string
		Content json.RawMessage
	}
	_ = json.Unmarshal(raw, &blocks) // neither form means that there is no text
	for _, b := range blocks {
		if b.Text != "" {
			all = append(all, b.Text)
		}
		if len(b.Content) > 0 {
			all = append(all, texts(b.Content)...)
		}
	}
	return all
}

// first is the first group of the first match, or "".
func first(pattern, text string) string {
	if m := regexp.MustCompile(pattern).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

type object = map[string]any

// content is the answer as blocks of a message, and why the message ends.
func (a answer) content() (blocks []object, reason string) {
	reason = "end_turn"
	if a.says != "" {
		blocks = append(blocks, object{"type": "text", "text": a.says})
	}
	for _, u := range a.calls {
		reason = "tool_use"
		blocks = append(blocks, object{"type": "tool_use", "id": "toolu_" + rand.Text(), "name": u.tool, "input": u.input})
	}
	return blocks, reason
}

func reply(content []object, reason any) object {
	return object{
		"id": "msg_scripted", "type": "message", "role": "assistant", "model": "claude-scripted", "content": content,
		"stop_reason": reason, "stop_sequence": nil,
		"usage": object{"input_tokens": 10, "output_tokens": 5},
	}
}

// events are a message as it is streamed.
func events(blocks []object, reason string) []object {
	all := []object{{"type": "message_start", "message": reply([]object{}, nil)}}
	for i, block := range blocks {
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
		object{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": 5}},
		object{"type": "message_stop"})
}
