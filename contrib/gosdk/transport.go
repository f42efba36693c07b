package gosdk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Transport is a transport of a client with a [Caller], on top of another one, which is not over
// HTTP. For HTTP there is [HTTPClient].
type Transport struct{ mcp.Transport }

// Connect implements [mcp.Transport].
func (t Transport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return connection{c}, nil
}

type connection struct{ mcp.Connection }

// Read implements [mcp.Connection].
func (c connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Response); ok && err == nil {
		r.Result = keepTask(r.Result)
	}
	return m, err
}

// keepTask puts the id of a task that answers a call to where the SDK keeps it. It returns
// everything else as it is.
func keepTask(result json.RawMessage) json.RawMessage {
	if !bytes.Contains(result, []byte(`"task"`)) {
		return result
	}
	var r struct {
		ResultType string `json:"resultType"`
		TaskID     string `json:"taskId"`
	}
	if json.Unmarshal(result, &r) != nil || r.ResultType != "task" || r.TaskID == "" {
		return result
	}
	kept, err := json.Marshal(map[string]any{"resultType": "task", "content": []any{},
		"_meta": map[string]any{metaTask: r.TaskID}})
	if err != nil {
		return result
	}
	return kept
}

// keepInMessage is keepTask for an encoded response.
func keepInMessage(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"task"`)) {
		return message
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(message, &m) != nil || m["result"] == nil {
		return message
	}
	m["result"] = keepTask(m["result"])
	kept, err := json.Marshal(m)
	if err != nil {
		return message
	}
	return kept
}

// HTTPClient returns a copy of an HTTP client for the mcp.StreamableClientTransport of a client
// with a [Caller]. Nil is [http.DefaultClient].
func HTTPClient(c *http.Client) *http.Client {
	if c == nil {
		c = http.DefaultClient
	}
	own := *c
	if own.Transport == nil {
		own.Transport = http.DefaultTransport
	}
	own.Transport = roundTripper{own.Transport}
	return &own
}

type roundTripper struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t roundTripper) RoundTrip(q *http.Request) (*http.Response, error) {
	method := q.Header.Get("Mcp-Method")
	if strings.HasPrefix(method, "tasks/") && q.GetBody != nil {
		id, err := taskIn(q)
		if err != nil {
			return nil, err
		}
		q = q.Clone(q.Context())
		q.Header.Set("Mcp-Name", id)
	}
	r, err := t.RoundTripper.RoundTrip(q)
	if err != nil || method != methodCall {
		return r, err
	}
	switch kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind {
	case "application/json":
		r.Body = &whole{body: r.Body}
	case "text/event-stream":
		r.Body = &events{body: r.Body, lines: bufio.NewReader(r.Body)}
	default:
		return r, nil
	}
	r.ContentLength = -1
	r.Header.Del("Content-Length")
	return r, nil
}

// taskIn returns the id of the task that a request is about.
func taskIn(q *http.Request) (string, error) {
	body, err := q.GetBody()
	if err != nil {
		return "", err
	}
	defer body.Close()
	var m struct {
		Params struct {
			TaskID string `json:"taskId"`
		} `json:"params"`
	}
	return m.Params.TaskID, json.NewDecoder(body).Decode(&m)
}

// whole is the body of one message.
type whole struct {
	body io.ReadCloser
	rest *bytes.Reader // nil until the body is read
}

// Read implements [io.Reader].
func (w *whole) Read(p []byte) (int, error) {
	if w.rest == nil {
		raw, err := io.ReadAll(w.body)
		if err != nil {
			return 0, err
		}
		w.rest = bytes.NewReader(keepInMessage(raw))
	}
	return w.rest.Read(p)
}

// Close implements [io.Closer].
func (w *whole) Close() error { return w.body.Close() }

// events is a stream of events, each with one message. A message on several lines passes as it is;
// the call then fails if it is a task.
type events struct {
	body  io.ReadCloser
	lines *bufio.Reader
	rest  []byte
	err   error
}

// Read implements [io.Reader].
func (e *events) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		var line []byte
		line, e.err = e.lines.ReadBytes('\n')
		if message, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			line = append([]byte("data: "), keepInMessage(bytes.TrimSpace(message))...)
			line = append(line, '\n')
		}
		e.rest = line
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// Close implements [io.Closer].
func (e *events) Close() error { return e.body.Close() }
