package interop

import (
	"context"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// gosdk is the client of the official Go SDK. It speaks the newest version that
// the server knows, or the one that it is pinned to.
type gosdk struct{ pinned string }

func (gosdk) release(t *testing.T) string {
	return moduleRelease(t, "github.com/modelcontextprotocol/go-sdk")
}

func (gosdk) cannot(string, way) string { return "" }

func (g gosdk) connect(ctx context.Context, s setup, w *witness) (session, error) {
	options := &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, p *mcp.ProgressNotificationClientRequest) {
			w.see(progress{p.Params.Progress, p.Params.Message})
		},
	}
	if s.Asks {
		options.ElicitationHandler = func(ctx context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			action, err := w.elicit(ctx, q.Params.Message)
			action, content := filledIn(action)
			return &mcp.ElicitResult{Action: action, Content: content}, err
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "interop-gosdk", Version: "1"}, options)
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: s.URL, HTTPClient: &http.Client{Transport: s.remote}}
	if s.URL == "" {
		transport = &mcp.CommandTransport{Command: s.command(ctx)}
	}
	connected, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: g.pinned})
	if err != nil {
		return nil, err
	}
	return gosdkSession{connected}, nil
}

type gosdkSession struct{ *mcp.ClientSession }

func (s gosdkSession) list(ctx context.Context) (names []string, err error) {
	for tool, err := range s.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, tool.Name)
	}
	return names, nil
}

func (s gosdkSession) call(ctx context.Context, c call) (result, error) {
	params := &mcp.CallToolParams{Name: c.Tool, Arguments: c.Arguments}
	if c.Progress {
		params.SetProgressToken("progress of the call")
	}
	answer, err := s.CallTool(ctx, params)
	if err != nil {
		return result{}, err
	}
	return asResult(answer)
}

func (s gosdkSession) close() error { return s.Close() }
