package main

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestServer(t *testing.T) {
	ours, theirs := mcp.NewInMemoryTransports()
	server, err := newServer().Connect(t.Context(), ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	})
	session, err := client.Connect(t.Context(), theirs, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"}) // later ones ask in results
	if err != nil {
		t.Fatal(err)
	}
	r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "launch"})
	if err != nil || r.IsError || r.Content[0].(*mcp.TextContent).Text != "accept" {
		t.Errorf("%+v, %v", r.Content[0], err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}

// TestLines counts the lines of newServer and the one that runs it.
func TestLines(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := bytes.Cut(source, []byte("\nfunc newServer("))
	n := 0 // the rest of the line of func counts for the one that runs it
	for line := range bytes.Lines(body) {
		if len(bytes.Trim(line, "\t})\n")) > 0 {
			n++
		}
	}
	if n != 10 {
		t.Errorf("%d lines", n)
	}
}
