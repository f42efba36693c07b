package interop

import (
	"context"
	"net/http"
	"os/exec"
	"testing"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// mcpgo is the client of mcp-go. It speaks the newest version that the server
// knows, or the one that it is pinned to.
type mcpgo struct{ pinned string }

func (mcpgo) release(t *testing.T) string { return moduleRelease(t, "github.com/mark3labs/mcp-go") }

func (g mcpgo) cannot(cell string, over way) string {
	if cell == "cancel a call" && over == overHTTP && g.pinned != "" {
		return "Over HTTP mcp-go only closes the stream, which cancels nothing in the versions with a handshake."
	}
	return ""
}

func (g mcpgo) connect(ctx context.Context, s setup, w *witness) (session, error) {
	way, err := g.transport(ctx, s)
	if err != nil {
		return nil, err
	}
	options := []mcpclient.ClientOption{mcpclient.WithProtocolVersion(g.pinned)}
	if s.Asks {
		options = append(options, mcpclient.WithElicitationHandler(mcpgoElicit{w}))
	}
	client := mcpclient.NewClient(way, options...)
	client.OnNotification(func(n mcp.JSONRPCNotification) {
		if n.Method == "notifications/progress" {
			number, _ := n.Params.AdditionalFields["progress"].(float64)
			message, _ := n.Params.AdditionalFields["message"].(string)
			w.see(progress{number, message})
		}
	})
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	hello := mcp.InitializeRequest{}
	hello.Params.ClientInfo = mcp.Implementation{Name: "interop-mcpgo", Version: "1"}
	if _, err := client.Initialize(ctx, hello); err != nil {
		_ = client.Close() // the other error says more
		return nil, err
	}
	return mcpgoSession{client}, nil
}

// transport is the way to the server.
func (g mcpgo) transport(ctx context.Context, s setup) (transport.Interface, error) {
	if s.URL != "" {
		options := []transport.StreamableHTTPCOption{transport.WithHTTPBasicClient(&http.Client{Transport: s.remote})}
		if g.pinned != "" {
			options = append(options, transport.WithContinuousListening()) // with it mcp-go speaks no other version
		}
		return transport.NewStreamableHTTP(s.URL, options...)
	}
	return transport.NewStdioWithOptions(s.Command[0], nil, nil, transport.WithCommandFunc(
		func(context.Context, string, []string, []string) (*exec.Cmd, error) { return s.command(ctx), nil })), nil
}

type mcpgoSession struct{ *mcpclient.Client }

func (s mcpgoSession) list(ctx context.Context) (names []string, err error) {
	list, err := s.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (s mcpgoSession) call(ctx context.Context, c call) (result, error) {
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = c.Tool, c.Arguments
	if c.Progress {
		request.Params.Meta = &mcp.Meta{ProgressToken: "progress of the call"}
	}
	answer, err := s.CallTool(ctx, request)
	if err != nil {
		return result{}, err
	}
	return asResult(answer)
}

func (s mcpgoSession) close() error { return s.Close() }

// mcpgoElicit is mcp-go's handler of questions.
type mcpgoElicit struct{ *witness }

func (e mcpgoElicit) Elicit(ctx context.Context, q mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	action, err := e.elicit(ctx, q.Params.Message)
	if err != nil {
		return nil, err
	}
	action, content := filledIn(action)
	answer := mcp.ElicitationResponse{Action: mcp.ElicitationResponseAction(action)}
	if content != nil {
		answer.Content = content
	}
	return &mcp.ElicitationResult{ElicitationResponse: answer}, nil
}
