package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// session is a client with a session of MCP 2025-11-25.
type session struct {
	http           *http.Client
	url, token, id string
	folder         string
}

const version = "2025-11-25"

// session begins a session of a user.
func (s *service) session(ctx context.Context, u user) (*session, error) {
	c := &session{http: s.lab.http, url: s.url, token: u.token, folder: u.folder}
	answer, err := c.send(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{"elicitation":{}},"clientInfo":{"name":"bench","version":"1"}}}`)
	if err != nil {
		return nil, err
	}
	c.id = answer.Header.Get("Mcp-Session-Id")
	return c, c.done(ctx, answer, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// send sends a message. The caller closes the body of the answer.
func (c *session) send(ctx context.Context, method, message string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(message))
	if err != nil {
		return nil, err
	}
	r.Header = http.Header{"Authorization": {"Bearer " + c.token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if c.id != "" {
		r.Header["Mcp-Session-Id"], r.Header["Mcp-Protocol-Version"] = []string{c.id}, []string{version}
	}
	answer, err := c.http.Do(r)
	if err == nil && answer.StatusCode/100 != 2 {
		text, _ := io.ReadAll(answer.Body) // it is for the error
		answer.Body.Close()
		return nil, fmt.Errorf("%s: %s", answer.Status, text)
	}
	return answer, err
}

// done reads the rest of an answer, and sends the next message, unless it is empty.
func (c *session) done(ctx context.Context, answer *http.Response, next string) error {
	_, err := io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	if err == nil && next != "" {
		if answer, err = c.send(ctx, http.MethodPost, next); err == nil {
			return c.done(ctx, answer, "")
		}
	}
	return err
}

// close ends the session.
func (c *session) close(ctx context.Context) error {
	answer, err := c.send(ctx, http.MethodDelete, "")
	if err != nil {
		return err
	}
	return c.done(ctx, answer, "")
}

// ping sends a request that the server answers at once.
func (c *session) ping(ctx context.Context) error {
	answer, err := c.send(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if err != nil {
		return err
	}
	return c.done(ctx, answer, "")
}

// run calls the tool codex and accepts what it asks, after asked has been called, unless that is
// nil. It returns how many events there were. It fails unless the prompt "ask" makes a question.
func (c *session) run(ctx context.Context, prompt string, asked func()) (events int, err error) {
	answer, err := c.send(ctx, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":%q,"cwd":%q}}}`, prompt, c.folder))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	questions := 0
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "" {
			continue
		}
		if strings.HasPrefix(data, `{"jsonrpc":"2.0","method":"codex/event"`) {
			events++
			continue
		}
		var m struct {
			ID     jsontext.Value `json:"id"`
			Method string         `json:"method"`
			Result struct {
				IsError bool `json:"isError"`
			} `json:"result"`
			Error jsontext.Value `json:"error"`
		}
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			return events, fmt.Errorf("%q: %w", data, err)
		}
		switch {
		case m.Method == "elicitation/create":
			if questions++; asked != nil {
				asked()
			}
			reply, err := c.send(ctx, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"decision":"approved"}}}`, m.ID))
			if err == nil {
				err = c.done(ctx, reply, "")
			}
			if err != nil {
				return events, err
			}
		case m.Method != "": // another notification
		case m.Error != nil || m.Result.IsError || (questions == 1) != (prompt == "ask"):
			return events, fmt.Errorf("the answer after %d questions: %.500s", questions, data)
		default:
			return events, nil
		}
	}
	return events, fmt.Errorf("the stream ended without an answer: %v", lines.Err())
}
