package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// conformanceClient is the client under test: it initializes, lists the tools,
// and calls the one that adds.
func conformanceClient(ctx context.Context, url string) error {
	client := jsonrpc.NewPeer(&httpClient{url: url, in: make(chan []byte, 16), closed: make(chan struct{})}, nil, nil)
	ended := make(chan error, 1)
	go func() { ended <- client.Run(ctx) }()
	talk := func() error {
		_, err := mcptypes.Initialize.Call(ctx, client, &mcptypes.InitializeRequestParams{
			ProtocolVersion: mcptypes.ProtocolVersion,
			ClientInfo:      mcptypes.Implementation{Name: "conformance", Version: "1"},
		})
		if err != nil {
			return err
		}
		if err := mcptypes.NotificationsInitialized.Notify(ctx, client, nil); err != nil {
			return err
		}
		tools, err := mcptypes.ToolsList.Call(ctx, client, nil)
		if err != nil {
			return err
		}
		for _, tool := range tools.Tools {
			if tool.Name != "add_numbers" {
				continue
			}
			sum, err := mcptypes.ToolsCall.Call(ctx, client, &mcptypes.CallToolRequestParams{Name: tool.Name, Arguments: json.RawMessage(`{"a":2,"b":3}`)})
			if err != nil {
				return err
			}
			if said, ok := sum.Content[0].(*mcptypes.TextContent); !ok || !strings.Contains(said.Text, "5") {
				return fmt.Errorf("2 + 3 is %+v", sum.Content)
			}
		}
		return nil
	}
	return errors.Join(talk(), client.Close(), <-ended)
}

const sessionHeader = "Mcp-Session-Id"

// envelope is what HTTP needs to know about a message.
type envelope struct {
	ID     *jsonrpc.ID `json:"id"`
	Method string      `json:"method"`
}

// httpClient is the transport of its peer, as small as the suite allows: no stream is
// resumed, and requests alone have streams.
type httpClient struct {
	url    string
	in     chan []byte
	closed chan struct{}

	session string
}

// Read implements jsonrpc.Transport.
func (c *httpClient) Read(ctx context.Context) ([]byte, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements jsonrpc.Transport. It waits for the answers to requests,
// which is enough for a client that calls one thing after another.
func (c *httpClient) Write(ctx context.Context, messages [][]byte) error {
	for _, m := range messages {
		if err := c.post(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (c *httpClient) post(ctx context.Context, m []byte) error {
	var e envelope
	if err := json.Unmarshal(m, &e); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(bytes.Clone(m)))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set(sessionHeader, c.session)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if id := answer.Header.Get(sessionHeader); id != "" {
		c.session = id
	}
	if e.ID == nil || e.Method == "" {
		return nil
	}
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		body, err := io.ReadAll(answer.Body)
		c.in <- body
		return err
	}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			c.in <- []byte(data)
		}
	}
	return lines.Err()
}

// Close implements jsonrpc.Transport.
func (c *httpClient) Close() error {
	close(c.closed)
	return nil
}
