// Command elicit is an MCP server on the official Go SDK with one tool, delete_branch, that
// asks the user before it acts. Package elicit builds the question and reads the answer; the
// SDK's session carries both. examples/elicit in the main module does the same without the
// SDK.
//
// Configure it in an MCP client that supports elicitation. -repo is the repository whose
// branches it may delete. From the folder contrib/examples/gosdk:
//
//	go run ./elicit -repo /path/to/repository
//
// It ends when its input ends, or on Ctrl-C.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	repo := flag.String("repo", ".", "the git repository `folder`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		dir, err := filepath.Abs(*repo)
		if err == nil {
			err = newServer(dir).Run(ctx, &mcp.StdioTransport{})
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "elicit:", err)
			os.Exit(1)
		}
	case <-ctx.Done(): // the SDK would wait for the answer to an open question
	}
}

type arguments struct {
	Branch string `json:"branch"`
}

func newServer(repo string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "elicit-example", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{
		Name:        "delete_branch",
		Description: "Delete a git branch, if the user allows it.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: new(true)},
	}, func(ctx context.Context, r *mcp.CallToolRequest, a arguments) (*mcp.CallToolResult, any, error) {
		return deleteBranch(ctx, askerFor(r.Session), repo, a.Branch), nil, nil
	})
	return s
}

// deleteBranch is the tool: it asks, and acts if the answer approves.
func deleteBranch(ctx context.Context, asker *elicit.Asker, repo, branch string) *mcp.CallToolResult {
	if output, err := git(ctx, repo, "show-ref", "--verify", "refs/heads/"+branch); err != nil {
		return failed(fmt.Sprintf("there is no branch %q: %s", branch, output)) // without asking
	}
	out := asker.Ask(ctx, &elicit.Question{
		// The name comes from a model: %q shows invisible characters.
		Message: fmt.Sprintf("Delete the branch %q of %s?", branch, repo),
		NotDone: "the branch was not deleted",
		Once:    true, // an approval is for this branch only
	})
	if !out.Decision.Approves() {
		return failed("not deleted: " + out.ForModel())
	}
	output, err := git(ctx, repo, "branch", "-D", "--", branch)
	if err != nil {
		return failed(fmt.Sprintf("git: %v\n%s", err, output))
	}
	return &mcp.CallToolResult{Content: text(output)}
}

// askerFor returns an Asker on the SDK's session.
func askerFor(session *mcp.ServerSession) *elicit.Asker {
	var client elicit.Client
	if p := session.InitializeParams(); p != nil {
		client.ProtocolVersion = p.ProtocolVersion
		capabilities, _ := json.Marshal(p.Capabilities) // they were decoded from JSON
		client.Capabilities = json.RawMessage(capabilities)
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

func git(ctx context.Context, repo string, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "git", append([]string{"-C", repo}, args...)...).CombinedOutput()
	return string(output), err
}

func failed(why string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: text(why), IsError: true}
}

func text(s string) []mcp.Content { return []mcp.Content{&mcp.TextContent{Text: s}} }
