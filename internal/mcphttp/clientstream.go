package mcphttp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// answer forwards the messages of a response up to the answer. If there is none, the client
// receives an error, unless it has cancelled the request.
func (c *Client) answer(ctx context.Context, e *envelope, r *errand, answer *http.Response, err error) {
	if err == nil {
		err = c.follow(ctx, e, r, answer)
	}
	if err != nil && c.forget(e.id, r) {
		c.write(errorAnswer(e.id, c.fault(err)))
	}
}

// fault returns the error for the client.
func (c *Client) fault(err error) *jsonrpc.Error {
	var said *jsonrpc.Error
	switch {
	case errors.As(err, &said):
		return said
	case c.ctx.Err() != nil:
		said = jsonrpc.Errorf(jsonrpc.CodeInternalError, "the connection to %s was closed", c.place())
	default:
		said = jsonrpc.Errorf(jsonrpc.CodeInternalError, "the server at %s: %v", c.place(), err)
	}
	said.Data = stdjson.RawMessage(unanswered)
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		said.Data = stdjson.RawMessage(unsent)
	}
	return said
}

// place returns the URL without its query, which may hold a secret.
func (c *Client) place() string {
	place, _, _ := strings.Cut(c.o.URL, "?")
	return place
}

// The data of the errors that a [Client] makes itself.
const (
	unanswered = `{"answer":"lost"}`
	unsent     = `{"answer":"lost","request":"not sent"}`
)

// Unanswered reports whether an error means that a [Client] has no answer of the server, and
// whether the server may have received the request.
func Unanswered(err error) (unknown, sent bool) {
	var said *jsonrpc.Error
	if !errors.As(err, &said) {
		return false, false
	}
	data := string(said.Data)
	return data == unanswered || data == unsent, data == unanswered
}

var errBroken = errors.New("the connection broke before the answer")

// follow reads a response to its end. It resumes a broken stream of a session until the
// answer has come, the session has ended, or the server has been away for too long.
func (c *Client) follow(ctx context.Context, e *envelope, r *errand, answer *http.Response) error {
	var at position
	done, err := c.consume(e, r, answer, &at)
	for b := newBackoff(); !done && at.last != "" && !r.today; {
		if !b.wait(ctx, at.retry) {
			return cmp.Or(ctx.Err(), err, errBroken)
		}
		var over bool
		if done, over, err = c.resume(ctx, e, r, &at, &b); over {
			return err
		}
	}
	if !done && err == nil {
		err = errBroken
	}
	return err
}

const (
	// retryAfter is the delay before a broken stream is resumed if the server has not said
	// another one. It doubles with each try, up to slowest. If the server wants a longer
	// delay than that, it does not grow.
	retryAfter = time.Second
	slowest    = 10 * time.Second
	// longest is the longest delay that a server may want.
	longest = time.Minute
	// patience is how long a server may be away. It is longer than a restart takes.
	patience = 2 * time.Minute
	// steady is how long a stream without an event must last to show that the server is
	// back.
	steady = 5 * time.Second
	// headTime is how long the head of a resumed stream may take.
	headTime = 30 * time.Second
)

// backoff is the wait between the tries to reach a server.
type backoff struct {
	until time.Time
	delay time.Duration // of the last try; 0 before the first
}

func newBackoff() backoff { return backoff{until: time.Now().Add(patience)} }

// wait waits for the next try, which the server wants after retry. It returns false if ctx
// has ended or the server has been away for too long.
func (b *backoff) wait(ctx context.Context, retry time.Duration) bool {
	first := cmp.Or(min(retry, longest), retryAfter)
	b.delay = max(first, min(2*b.delay, slowest))
	if time.Now().Add(b.delay).After(b.until) {
		return false
	}
	select {
	case <-time.After(b.delay):
		return true
	case <-ctx.Done():
		return false
	}
}

// resume reads the stream of a session after its last event, or the stream that belongs to no request if there was none.
// Over reports that the session has ended or the stream cannot be resumed. If the server is back, the next wait is as
// the first.
func (c *Client) resume(
	ctx context.Context, e *envelope, r *errand, at *position, b *backoff,
) (done, over bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(headTime, cancel)
	h := http.Header{headerSession: {r.session}}
	if at.last != "" {
		h.Set(headerEvent, at.last)
	}
	answer, err := c.send(ctx, http.MethodGet, nil, h)
	switch {
	case err != nil:
		return false, false, err
	case !late.Stop():
		answer.Body.Close()
		return false, false, context.DeadlineExceeded
	case isOver(answer):
		return false, true, c.refusal(answer)
	}
	before, begin := at.last, time.Now()
	done, err = c.consume(e, r, answer, at)
	if at.last != before || time.Since(begin) >= steady {
		*b = newBackoff()
	}
	return done, false, err
}

// isOver reports whether a response means that the session has ended, or that its stream cannot
// be resumed.
func isOver(answer *http.Response) bool {
	return answer.StatusCode/100 == 4 && answer.StatusCode != http.StatusTooManyRequests &&
		answer.StatusCode != http.StatusRequestTimeout
}

// refusal returns the error for a request whose stream cannot be resumed.
func (c *Client) refusal(answer *http.Response) error {
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound {
		return errLost
	}
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 500)) // what could be read
	return fmt.Errorf("%w: %s: %s", errBroken, answer.Status, strings.TrimSpace(string(body)))
}

var errLost = errors.New("the session has ended, for example because the server was restarted; " +
	"what the request did until then remains")

// position is how far a stream was read.
type position struct {
	last  string        // the id of the last event
	retry time.Duration // how long to wait before the stream is resumed; 0 if the server has not said
}

// consume reads one response and moves the position. It reports whether it has read the
// answer.
func (c *Client) consume(e *envelope, r *errand, answer *http.Response, at *position) (done bool, err error) {
	defer answer.Body.Close()
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if kind == "text/event-stream" && answer.StatusCode == http.StatusOK {
		err = events(answer.Body, at, c.o.MaxMessage, func(m []byte) bool {
			done = c.pass(e, r, m)
			return done
		})
		return done, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, int64(c.o.MaxMessage)+1))
	switch {
	case err != nil:
		return false, err
	case len(body) > c.o.MaxMessage:
		return false, errLong
	case answer.StatusCode/100 == 3:
		return false, redirected(answer)
	case answer.StatusCode == http.StatusUnauthorized && kind != "application/json":
		return false, fmt.Errorf("%s: the token is missing, wrong or too old", answer.Status)
	case answer.StatusCode == http.StatusAccepted && len(body) == 0:
		return true, errors.New("the request was cancelled")
	case kind != "application/json":
		return false, fmt.Errorf("%s: %s", answer.Status, strings.TrimSpace(string(body[:min(len(body), 500)])))
	}
	if c.pass(e, r, body) {
		return true, nil
	}
	m, _ := jsonrpc.Parse(body)                             // of what is no message, what could be read
	if said := failure(&m); said != nil && said.Code != 0 { // an error without an id
		return false, &jsonrpc.Error{Code: said.Code, Message: said.Message}
	}
	return false, errors.New(answer.Status)
}

// pass sends a message to the client, and reports whether it is the answer to the request.
// It drops an answer for which the client does not wait any more.
func (c *Client) pass(e *envelope, r *errand, m []byte) (answer bool) {
	out, _ := jsonrpc.Parse(m) // of what is no message, what could be read
	if out.Method != "" {
		if out.ID.IsZero() || r.today || c.asks(out.ID, r.session) {
			c.write(m)
		}
		return false
	}
	if e == nil || out.ID != e.id {
		return false
	}
	if e.method == "initialize" {
		c.negotiated(versionOf(&out))
	}
	if e.method == "tools/list" && r.today {
		m = c.mirrors.learn(m)
	}
	if c.forget(e.id, r) {
		c.write(m)
	}
	return true
}

// negotiated records the version of the session.
func (c *Client) negotiated(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session.version = version
}

// events calls f with the data of each event until f returns true, and moves the position. It
// reads the format text/event-stream of the HTML standard, except that only a newline ends a
// line, and that the type of an event does not matter.
func events(body io.Reader, at *position, longest int, f func([]byte) bool) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, longest+len("data: \r\n")+1) // the scanner fails when this is full
	var data []byte
	id := at.last
	for lines.Scan() {
		line := lines.Bytes() // without a \r before the newline
		if len(line) == 0 {
			at.last = id // an event that is torn must be sent again
			if len(data) > 0 && f(data[1:]) {
				return nil
			}
			data = nil
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			id = string(value)
		case "data":
			if len(data)+len(value) > longest {
				return errLong
			}
			if len(data) > 0 || len(value) > 0 {
				data = append(append(data, '\n'), value...)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				at.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return errLong
	}
	return lines.Err()
}

var errLong = errors.New("the message is too long")

// redirected returns the error for a redirect that is not followed.
func redirected(answer *http.Response) error {
	where := "another place"
	if to, err := answer.Location(); err == nil {
		where = to.Scheme + "://" + to.Host
	}
	return fmt.Errorf("%s: it redirects to %s, which is not followed", answer.Status, where)
}

// listen forwards the messages of a session that belong to no request, until the session has
// ended or another one has taken its place.
func (c *Client) listen(session string) {
	var at position
	for b := newBackoff(); c.sessionNow() == session; {
		// the next try continues after another failure
		if _, over, _ := c.resume(c.ctx, nil, &errand{session: session}, &at, &b); over {
			return
		}
		if !b.wait(c.ctx, at.retry) {
			if c.ctx.Err() != nil {
				return
			}
			b = newBackoff() // a client may be idle for long
		}
	}
}
