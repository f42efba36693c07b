package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestRunAsksFirst(t *testing.T) {
	for _, tt := range []struct {
		name, action string
		fails        bool
		want         string
	}{
		{"accept", "accept", false, "go version"},
		{"decline", "decline", false, "not run: declined"},
		{"cancel", "cancel", false, "not run: "},
		{"error", "", true, "not run: the client could not show the approval request"},
		{"no capability", "", false, "not run: this MCP client cannot show approval requests"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			options := &mcp.ClientOptions{}
			if tt.action != "" || tt.fails {
				options.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					if !strings.HasPrefix(r.Params.Message, "Allow the tool to run `go version` in `") {
						t.Errorf("asked %q", r.Params.Message)
					}
					if tt.fails {
						return nil, errors.New("no")
					}
					return &mcp.ElicitResult{Action: tt.action}, nil
				}
			}
			ours, theirs := mcp.NewInMemoryTransports()
			server, err := newServer().Connect(ctx, theirs, nil)
			if err != nil {
				t.Fatal(err)
			}
			client, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, options).
				Connect(ctx, ours, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
			if err != nil {
				t.Fatal(err)
			}
			result, err := client.CallTool(ctx, &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"command": []string{"go", "version"}}})
			if err != nil {
				t.Fatal(err)
			}
			if got := result.Content[0].(*mcp.TextContent).Text; !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q…", got, tt.want)
			}
			if err := errors.Join(client.Close(), server.Wait()); err != nil {
				t.Error(err)
			}
		})
	}
}
