package streamable

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// refuse answers with a sentence.
func refuse(w http.ResponseWriter, status int, words string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, words)
}

// fail answers with a JSON-RPC error; the zero id is left out.
func fail(w http.ResponseWriter, status int, id jsonrpc.ID, e *jsonrpc.Error) {
	type wire struct {
		Code    jsonrpc.Code   `json:"code"`
		Message string         `json:"message"`
		Data    jsontext.Value `json:"data,omitzero"`
	}
	answer := struct {
		Version string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id,omitzero"`
		Error   wire           `json:"error"`
	}{Version: "2.0", Error: wire{e.Code, e.Message, jsontext.Value(e.Data)}}
	if !id.IsZero() {
		answer.ID = id.AppendJSON(nil)
	}
	body, err := jsonv2.Marshal(answer, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		refuse(w, http.StatusInternalServerError, "the error cannot be encoded")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone reads nothing
}

// statusOf is the status of a request of 2026-07-28 that is answered with nothing but
// an error of that code. path is the member of params at fault.
func statusOf(code jsonrpc.Code, path string) int {
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeParseError, jsonrpc.CodeInvalidRequest, modern.CodeHeaderMismatch,
		modern.CodeMissingRequiredClientCapability, modern.CodeUnsupportedProtocolVersion:
		return http.StatusBadRequest
	case jsonrpc.CodeInvalidParams:
		if len(path) >= len("/_meta") && path[:len("/_meta")] == "/_meta" {
			return http.StatusBadRequest
		}
	}
	return http.StatusOK
}

// heartbeat is how often an open stream shows to proxies on the way that it lives.
const heartbeat = 15 * time.Second

// writer writes a response with deadlines: a client that does not read is left.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

func newWriter(w http.ResponseWriter, timeout time.Duration) *writer {
	return &writer{w, http.NewResponseController(w), timeout}
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

// retryDelay is how long a client that was primed waits before it takes up a stream
// that broke.
const retryDelay = time.Second

// stream begins a response of events. With an id its first event is an empty one, by
// which the client can take up the stream before anything has come.
func (w *writer) stream(id string) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.deadline()
	w.WriteHeader(http.StatusOK)
	if id != "" {
		if _, err := fmt.Fprintf(w, "id: %s\nretry: %d\ndata: \n\n", id, retryDelay.Milliseconds()); err != nil {
			return err
		}
	}
	return w.flush()
}

// event writes an event; id is "" for one that cannot be taken up again.
func (w *writer) event(id string, message []byte) error {
	b := make([]byte, 0, len(message)+len(id)+32)
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(b, "event: message\ndata: "...)
	at := len(b)
	b = append(b, message...)
	for i := at; i < len(b); i++ {
		if b[i] == '\r' || b[i] == '\n' { // white space between tokens, which would end the line
			b[i] = ' '
		}
	}
	w.deadline()
	_, err := w.Write(append(b, "\n\n"...))
	return err
}

// beat writes a comment.
func (w *writer) beat() error {
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

// deadline sets a time limit for one write. Where that is not supported there is no
// limit.
func (w *writer) deadline() { _ = w.control.SetWriteDeadline(time.Now().Add(w.timeout)) }
