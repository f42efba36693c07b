package streamable

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	jsonv2 "github.com/go-json-experiment/json"
)

// With Prefer: stream (RFC 7240) the handler sends the head of the response to a request of a
// session as soon as the peer has accepted the request.
const (
	headerPrefer = "Prefer"
	preferStream = "stream"
)

// answer forwards the messages of a response up to the answer. If there is none, the client
// receives an error, unless it has cancelled the request.
func (p *Proxy) answer(ctx context.Context, e *envelope, r *errand, answer *http.Response, err error) {
	if err == nil {
		err = p.follow(ctx, e, r, answer)
	}
	if err != nil && p.forget(e.id, r) {
		p.refuse(e.id, p.fault(err))
	}
}

// fault returns the error for the client.
func (p *Proxy) fault(err error) *jsonrpc.Error {
	var said *jsonrpc.Error
	switch {
	case errors.As(err, &said):
		return said
	case p.ctx.Err() != nil:
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "the connection to %s was closed", p.o.URL)
	}
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "the server at %s: %v; start it with codex-mcp http", p.o.URL, err)
}

var errBroken = errors.New("the connection broke before the answer")

// follow reads a response to its end. It resumes a broken stream of a session.
func (p *Proxy) follow(ctx context.Context, e *envelope, r *errand, answer *http.Response) error {
	last, done, err := p.consume(e, r, answer)
	for try := 0; !done && last != "" && !r.today && try < retries; try++ {
		select {
		case <-time.After(retryAfter << try):
		case <-ctx.Done():
			return ctx.Err()
		}
		before := last
		if answer, err = p.send(ctx, http.MethodGet, nil, http.Header{http.CanonicalHeaderKey(headerEvent): {last}}); err == nil {
			if last, done, err = p.consume(e, r, answer); last != before {
				try = 0
			}
			last = cmp.Or(last, before)
		}
	}
	if !done && err == nil {
		err = errBroken
	}
	return err
}

// consume reads one response. It returns the id of the last event, and whether it has read
// the answer.
func (p *Proxy) consume(e *envelope, r *errand, answer *http.Response) (last string, done bool, err error) {
	defer answer.Body.Close()
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if kind == "text/event-stream" && answer.StatusCode == http.StatusOK {
		last, err = events(answer.Body, func(m []byte) bool {
			done = p.pass(e, r, m)
			return done
		})
		return last, done, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxLine))
	switch {
	case err != nil:
		return "", false, err
	case answer.StatusCode == http.StatusAccepted && len(body) == 0:
		return "", true, errors.New("the request was cancelled")
	case kind != "application/json":
		return "", false, fmt.Errorf("%s: %s", answer.Status, strings.TrimSpace(string(body[:min(len(body), 500)])))
	}
	if p.pass(e, r, body) {
		return "", true, nil
	}
	var said struct {
		Error struct {
			Code    jsonrpc.Code `json:"code"`
			Message string       `json:"message"`
		} `json:"error"`
	}
	if jsonv2.Unmarshal(body, &said, lenient) == nil && said.Error.Code != 0 { // an error without an id
		return "", false, &jsonrpc.Error{Code: said.Error.Code, Message: said.Error.Message}
	}
	return "", false, errors.New(answer.Status)
}

// pass sends a message to the client, and reports whether it is the answer to the request.
// It drops an answer for which the client does not wait any more.
func (p *Proxy) pass(e *envelope, r *errand, m []byte) (answer bool) {
	out := summarize(m)
	if out.method != "" {
		p.write(m)
		return false
	}
	if e == nil || out.id != e.id {
		return false
	}
	if e.method == "initialize" {
		p.negotiated(m)
	}
	if p.forget(e.id, r) {
		p.write(m)
	}
	return true
}

// negotiated records the version of the session.
func (p *Proxy) negotiated(m []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version = versionOf(m)
}

// events calls f with the data of each event until f returns true. It returns the id of the
// last event.
func events(body io.Reader, f func([]byte) bool) (last string, err error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLine)
	var data []byte
	for lines.Scan() {
		line := lines.Text()
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			last = id
		}
		if d, ok := strings.CutPrefix(line, "data: "); ok {
			data = append(data, d...)
		}
		if line == "" && data != nil {
			if f(data) {
				return last, nil
			}
			data = nil
		}
	}
	return last, lines.Err()
}

// listen forwards the messages that belong to no request until the session ends.
func (p *Proxy) listen() {
	last := ""
	for try := 0; p.ctx.Err() == nil; try = min(try+1, retries) {
		h := http.Header{}
		if last != "" {
			h.Set(headerEvent, last)
		}
		answer, err := p.send(p.ctx, http.MethodGet, nil, h)
		if err == nil {
			if answer.StatusCode/100 == 4 && answer.StatusCode != http.StatusTooManyRequests {
				answer.Body.Close()
				return // the session has ended
			}
			var at string
			if at, _, _ = p.consume(nil, nil, answer); at != "" {
				last, try = at, 0
			}
		}
		select {
		case <-time.After(retryAfter << try):
		case <-p.ctx.Done():
		}
	}
}
