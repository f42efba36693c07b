package main

import (
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
	calls int
}

// line is a line of the script: to a message that contains heard it answers
// with a text or with calls of tools, once.
type line struct {
	heard string
	says  string
	calls []use
	// stops makes a call of TaskStop for the first background task of the
	// conversation.
	stops bool
	// waits makes a call of codex-wait for the thread that is named in what was heard.
	waits bool
}

// use is the call of a tool by the model.
type use struct {
	id    string // is given when it is made
	tool  string
	input map[string]any
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

// script adds lines.
func (c *claude) script(lines ...line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, lines...)
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
	if !streams {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(reply(answer.content(), answer.reason())) // fails only when the client has gone
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range answer.events() {
		text, err := json.Marshal(e)
		if err != nil {
			panic(err) // maps of strings and numbers
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e["type"], text)
	}
}

// answer keeps a request and finds the line for it.
func (c *claude) answer(r request) line {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, r)
	if len(r.tools) == 0 {
		return line{says: "Scripted"}
	}
	for i, l := range c.lines {
		if !strings.Contains(r.newest, l.heard) {
			continue
		}
		c.lines = append(c.lines[:i:i], c.lines[i+1:]...)
		if l.stops {
			l.calls = []use{{tool: "TaskStop", input: object{"task_id": first(backgroundID, string(r.body))}}}
		}
		if l.waits {
			l.calls = []use{{tool: "mcp__codex__codex-wait", input: object{"threadIds": []string{first(threadID, r.newest)}}}}
		}
		for i := range l.calls {
			c.calls++
			l.calls[i].id = fmt.Sprintf("toolu_scripted_%d", c.calls)
		}
		return l
	}
	return line{says: "Noted."}
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

var (
	// backgroundID is Claude Code's id of a task.
	backgroundID = regexp.MustCompile(`background as task ([a-z0-9]+)`)
	threadID     = regexp.MustCompile(`"threadId":"([^"]+)"`)
)

// first is the first group of the first match, or "".
func first(re *regexp.Regexp, text string) string {
	if m := re.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
