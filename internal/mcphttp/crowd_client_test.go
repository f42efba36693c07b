package mcphttp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"
)

// member is one of many principals of a handler. It checks that everything it receives
// contains no name but its own.
type member struct {
	name    string
	url     string
	client  *http.Client
	session headers
	made    crowdWork
}

// crowdWork is the open work of a member.
type crowdWork struct {
	call, standing *events
	back           string // the response to the session's call in the background
	round          string // a requestState
	task           string
	threads        []string // threads in the background: of the session, and of 2026-07-28
}

const (
	asks  = `{"elicitation":{}}`
	tasks = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

var anyMember = regexp.MustCompile(`member-\d+`)

// checkNames returns an error if a text contains the name of another member.
func (m *member) checkNames(text string) error {
	for _, name := range anyMember.FindAllString(text, -1) {
		if name != m.name {
			return fmt.Errorf("%s received data of %s: %s", m.name, name, text)
		}
	}
	return nil
}

// open sends a request and returns its response.
func (m *member) open(ctx context.Context, method, body string, h headers) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, m.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+m.name)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return m.client.Do(r)
}

// do sends a request and reads its response to the end.
func (m *member) do(ctx context.Context, method, body string, h headers) (status int, text string, err error) {
	answer, err := m.open(ctx, method, body, h)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err == nil {
		err = m.checkNames(string(raw))
	}
	return answer.StatusCode, string(raw), err
}

// today sends a request of 2026-07-28 and returns its answer.
func (m *member) today(ctx context.Context, id, method, name, capabilities, params string) (string, error) {
	body, h := modern(id, method, capabilities, params)
	delete(h, "Mcp-Name")
	if name != "" {
		h["Mcp-Name"] = name
	}
	_, text, err := m.do(ctx, http.MethodPost, body, h)
	return text, err
}

// events is an open response of events.
type events struct {
	of    *member
	body  io.Closer
	lines *bufio.Scanner
	last  string // the id of the last event
}

// stream sends a request of the session whose response is a stream.
func (m *member) stream(ctx context.Context, method, body string, more headers) (*events, error) {
	h := maps.Clone(m.session)
	maps.Copy(h, more)
	answer, err := m.open(ctx, method, body, h)
	if err != nil {
		return nil, err
	}
	if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
		answer.Body.Close()
		return nil, fmt.Errorf("%s: %s %s", body, answer.Status, kind)
	}
	return &events{of: m, body: answer.Body, lines: bufio.NewScanner(answer.Body)}, nil
}

// until returns the first event that contains part.
func (e *events) until(part string) (string, error) {
	for e.lines.Scan() {
		if id, ok := strings.CutPrefix(e.lines.Text(), "id: "); ok {
			e.last = id
		}
		data, _ := strings.CutPrefix(e.lines.Text(), "data: ")
		if err := e.of.checkNames(data); err != nil {
			return "", err
		}
		if strings.Contains(data, part) {
			return data, nil
		}
	}
	return "", fmt.Errorf("the stream ended before %s: %v", part, e.lines.Err())
}

// find returns a member of the result in an answer, or of a value in the result.
func find(text, name string) (string, error) {
	var m map[string]json.RawMessage
	last := text[strings.LastIndex(strings.TrimRight(text, "\n"), "\n")+1:] // the last event of a stream
	if err := json.Unmarshal([]byte(strings.TrimPrefix(last, "data: ")), &m); err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	for _, in := range []string{"result", "structuredContent"} {
		var next map[string]json.RawMessage
		if json.Unmarshal(m[in], &next) != nil {
			break
		}
		var value string
		if m = next; json.Unmarshal(m[name], &value) == nil && value != "" {
			return value, nil
		}
	}
	return "", fmt.Errorf("no %s in %s", name, text)
}
