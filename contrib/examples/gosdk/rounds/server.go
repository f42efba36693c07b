package main

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type arguments struct {
	Branch string `json:"branch"`
}

func newServer(repo string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "rounds-example", Version: "1"}, nil)
	tool := &tool{repo: repo}
	mcp.AddTool(s, &mcp.Tool{
		Name:        "delete_branch",
		Description: "Delete a git branch, if the user allows it.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: new(true)},
	}, func(ctx context.Context, r *mcp.CallToolRequest, a arguments) (*mcp.CallToolResult, any, error) {
		result, err := tool.call(ctx, r, a.Branch)
		return result, nil, err
	})
	return s
}

type tool struct {
	repo string
	open questions
}

// call asks first. It acts when the call is repeated with an answer that approves.
func (t *tool) call(ctx context.Context, r *mcp.CallToolRequest, branch string) (*mcp.CallToolResult, error) {
	question := &elicit.Question{
		// The name comes from a model: %q shows invisible characters.
		Message: fmt.Sprintf("Delete the branch %q of %s?", branch, t.repo),
		NotDone: "the branch was not deleted",
		Once:    true, // an approval is for this branch only
	}
	var out elicit.Outcome
	if state := r.Params.RequestState; state != "" {
		if !t.open.take(state, branch) {
			return failed("not deleted: there is no open question with this requestState"), nil
		}
		out = answer(question, r.Params.InputResponses)
	} else {
		if output, err := t.git(ctx, "show-ref", "--verify", "refs/heads/"+branch); err != nil {
			return failed(fmt.Sprintf("there is no branch %q: %s", branch, output)), nil // without asking
		}
		if client := clientOf(r); client.CanAsk() {
			requests, err := ask(question, client)
			if err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{InputRequests: requests, RequestState: t.open.add(branch)}, nil
		}
		out = question.ReadError(elicit.ErrUnsupported, nil)
	}
	if !out.Decision.Approves() {
		return failed("not deleted: " + out.ForModel()), nil
	}
	output, err := t.git(ctx, "branch", "-D", "--", branch)
	if err != nil {
		return failed(fmt.Sprintf("git: %v\n%s", err, output)), nil
	}
	return &mcp.CallToolResult{Content: text(output)}, nil
}

func (t *tool) git(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "git", append([]string{"-C", t.repo}, args...)...).CombinedOutput()
	return string(output), err
}

func failed(why string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: text(why), IsError: true}
}

func text(s string) []mcp.Content { return []mcp.Content{&mcp.TextContent{Text: s}} }
