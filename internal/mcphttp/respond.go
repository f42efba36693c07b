package mcphttp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// refuse answers with a text.
func refuse(w http.ResponseWriter, status int, words string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, words)
}

// wireError is the error of an answer.
type wireError struct {
	Code    jsonrpc.Code   `json:"code"`
	Message string         `json:"message"`
	Data    jsontext.Value `json:"data,omitzero"`
}

// failure returns the error of an answer, which has no code if it cannot be read; nil for other messages.
func failure(m *jsonrpc.Message) (e *wireError) {
	if m.Error != nil {
		e = &wireError{}
		_ = jsonv2.Unmarshal(m.Error, e, lenient())
	}
	return e
}

// errorAnswer returns an answer that is an error. It omits the zero id.
func errorAnswer(id jsonrpc.ID, e *jsonrpc.Error) []byte {
	answer := struct {
		Version string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id,omitzero"`
		Error   wireError      `json:"error"`
	}{Version: "2.0", Error: wireError{e.Code, e.Message, jsontext.Value(e.Data)}}
	if !id.IsZero() {
		answer.ID = id.AppendJSON(nil)
	}
	body, _ := jsonv2.Marshal(answer, jsontext.AllowInvalidUTF8(true)) // cannot fail: the data is this package's
	return body
}

// fail answers with a JSON-RPC error.
func fail(w http.ResponseWriter, status int, id jsonrpc.ID, e *jsonrpc.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(errorAnswer(id, e)) // fails only if the client has gone
}

// statusOf returns the HTTP status for a request of 2026-07-28 whose response is only an answer.
func statusOf(answer []byte) int {
	m, _ := jsonrpc.Parse(answer) // the peer's own
	e := failure(&m)
	if e == nil {
		return http.StatusOK
	}
	switch e.Code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeParseError, jsonrpc.CodeInvalidRequest, modern.CodeHeaderMismatch,
		modern.CodeMissingRequiredClientCapability, modern.CodeUnsupportedProtocolVersion:
		return http.StatusBadRequest
	case jsonrpc.CodeInvalidParams:
		if path := text(member(e.Data, "path")); path != nil && strings.HasPrefix(*path, "/_meta") {
			return http.StatusBadRequest // the faulty member of params
		}
	}
	return http.StatusOK
}

// heartbeat is the interval at which an open stream sends a comment. Proxies on the way
// close connections that are silent for long.
const heartbeat = 15 * time.Second

// writer writes a response: one JSON text, or a stream of events, as which it begins with the first event or beat.
// Each write has a deadline, so that a client that does not read cannot block it.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	first   func() string // the id of an empty event at the begin of a stream; "" for none
	begun   bool          // it is a stream
}

// json writes a whole response.
func (w *writer) json(status int, body []byte) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.deadline()
	w.WriteHeader(status)
	_, err := w.Write(body)
	return errors.Join(err, w.flush())
}

// retryDelay is how long a client waits before it resumes a broken stream.
const retryDelay = time.Second

// begin makes the response a stream of events. If the first is empty and has an id, the client can resume the stream
// before the first message. The caller flushes.
func (w *writer) begin() error {
	if w.begun {
		return nil
	}
	w.begun = true
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.deadline()
	w.WriteHeader(http.StatusOK)
	id := w.first()
	if id == "" {
		return nil
	}
	_, err := fmt.Fprintf(w, "id: %s\nretry: %d\ndata: \n\n", id, retryDelay.Milliseconds())
	return err
}

// event writes an event. An event with the id "" cannot be resumed from.
func (w *writer) event(id string, message []byte) error {
	if err := w.begin(); err != nil {
		return err
	}
	b := make([]byte, 0, len(message)+len(id)+32)
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(b, "event: message\ndata: "...)
	at := len(b)
	b = append(b, message...)
	for i := at; i < len(b); i++ {
		// A line break would end the line of the event. In JSON it can only be white space
		// between tokens.
		if b[i] == '\r' || b[i] == '\n' {
			b[i] = ' '
		}
	}
	w.deadline()
	_, err := w.Write(append(b, "\n\n"...))
	return err
}

// beat writes a comment, which clients ignore.
func (w *writer) beat() error {
	if err := w.begin(); err != nil {
		return err
	}
	w.deadline()
	_, err := w.Write([]byte(":\n\n"))
	return errors.Join(err, w.flush())
}

func (w *writer) flush() error {
	err := w.control.Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// deadline sets a time limit for one write, if the ResponseWriter supports that.
func (w *writer) deadline() { _ = w.control.SetWriteDeadline(time.Now().Add(w.timeout)) }
