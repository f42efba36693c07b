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
	service *service
	user    user
	id      string
}

// session begins a session of a user.
func (s *service) session(ctx context.Context, u user) (*session, error) {
	c := &session{service: s, user: u}
	_, err := c.send(ctx, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"bench","version":"1"}}}`, nil)
	if err == nil {
		_, err = c.send(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	}
	return c, err
}

// received counts what came for a message.
type received struct{ events, questions, responses int }

// send sends a message and reads the answer to its end; "" ends the session. It accepts what the
// server asks, after asked has returned, unless that is nil.
func (c *session) send(ctx context.Context, message string, asked func()) (got received, err error) {
	method := http.MethodPost
	if message == "" {
		method = http.MethodDelete
	}
	r, err := http.NewRequestWithContext(ctx, method, c.service.url, strings.NewReader(message))
	if err != nil {
		return got, err
	}
	r.Header = http.Header{"Authorization": {"Bearer " + c.user.token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if c.id != "" {
		r.Header["Mcp-Session-Id"], r.Header["Mcp-Protocol-Version"] = []string{c.id}, []string{"2025-11-25"}
	}
	answer, err := c.service.lab.http.Do(r)
	if err != nil {
		return got, err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		text, _ := io.ReadAll(answer.Body) // it is for the error
		return got, fmt.Errorf("%s: %s", answer.Status, text)
	}
	if id := answer.Header.Get("Mcp-Session-Id"); id != "" {
		c.id = id
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		data := strings.TrimPrefix(lines.Text(), "data: ")
		if strings.HasPrefix(data, `{"jsonrpc":"2.0","method":"codex/event"`) {
			got.events++
			continue
		}
		if !strings.HasPrefix(data, "{") {
			continue // another field of server-sent events
		}
		var m struct {
			ID, Error jsontext.Value
			Method    string
			Result    struct{ IsError bool }
		}
		if err := json.Unmarshal([]byte(data), &m, json.MatchCaseInsensitiveNames(true)); err != nil || m.Error != nil || m.Result.IsError {
			return got, fmt.Errorf("%.500q: %v", data, err)
		}
		switch m.Method {
		case "":
			got.responses++
		case "elicitation/create":
			if got.questions++; asked != nil {
				asked()
			}
			if _, err := c.send(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"decision":"approved"}}}`, m.ID), nil); err != nil {
				return got, err
			}
		}
	}
	return got, lines.Err()
}

// do calls the tool codex with a prompt, or sends a ping without one, and returns how many events
// there were. asked is as for [session.send].
func (c *session) do(ctx context.Context, prompt string, asked func()) (events int, err error) {
	message := `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	if prompt != "" {
		message = fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":%q,"cwd":%q}}}`, prompt, c.user.folder)
	}
	got, err := c.send(ctx, message, asked)
	if err == nil && (got.responses != 1 || (got.questions == 1) != (prompt == "ask") || (got.events >= c.service.lab.size.pieces) != (prompt == "stream")) {
		err = fmt.Errorf("the answer to %q had %+v", prompt, got)
	}
	return got.events, err
}

// use calls the tool codex once, in a session of a user that then ends.
func (s *service) use(ctx context.Context, u user, prompt string, asked func()) error {
	c, err := s.session(ctx, u)
	if err == nil {
		_, err = c.do(ctx, prompt, asked)
	}
	if err == nil {
		_, err = c.send(ctx, "", nil)
	}
	return err
}
