// Command approve is an MCP server on the official Go SDK with one tool that
// runs a command, once the user has allowed it. Package elicit builds the
// question and reads the answer; the SDK's session carries both.
//
//	approve        (from an MCP client, on standard input and output)
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if err := newServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "approve:", err)
		os.Exit(1)
	}
}

type runArguments struct {
	Command []string `json:"command" jsonschema:"the program and its arguments"`
}

func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "approve", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "run", Description: "Run a command that the user allows."},
		func(ctx context.Context, r *mcp.CallToolRequest, a runArguments) (*mcp.CallToolResult, any, error) {
			if len(a.Command) == 0 {
				return nil, nil, fmt.Errorf("command is empty")
			}
			dir, err := os.Getwd()
			if err != nil {
				return nil, nil, err
			}
			question := (&elicit.ExecQuestion{Subject: "the tool", Command: a.Command, Cwd: dir}).Question()
			switch out := askerFor(r.Session).Ask(ctx, question); out.Decision {
			case elicit.Approved, elicit.ApprovedForSession:
				output, err := exec.CommandContext(ctx, a.Command[0], a.Command[1:]...).CombinedOutput()
				return text(string(output)), nil, err
			default:
				return text("not run: " + out.ForModel()), nil, nil
			}
		})
	return s
}

// askerFor asks over the SDK's session.
func askerFor(session *mcp.ServerSession) *elicit.Asker {
	var client elicit.Client
	if p := session.InitializeParams(); p != nil {
		client.ProtocolVersion = p.ProtocolVersion
		client.Capabilities, _ = json.Marshal(p.Capabilities) // came from JSON
	}
	return elicit.NewAsker(elicit.CallFunc(func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		var p mcp.ElicitParams
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		result, err := session.Elicit(ctx, &p)
		if err != nil {
			return nil, err
		}
		return json.Marshal(result)
	}), client, nil)
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
