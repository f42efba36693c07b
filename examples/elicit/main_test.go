package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/examples/internal/exampletest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

func TestDeleteBranchAsksFirst(t *testing.T) {
	for _, tt := range []struct {
		name   string
		able   bool
		answer mcptypes.ElicitResultAction // "" answers with an error
		branch string
		asked  bool
		want   string
		kept   bool
	}{
		{"accept", true, "accept", "old", true, "Deleted branch old", false},
		{"decline", true, "decline", "old", true, "not deleted: declined", true},
		{"cancel", true, "cancel", "old", true, "not deleted: the client cancelled the approval request", true},
		{"error", true, "", "old", true, "not deleted: the client could not show the approval request", true},
		{"no capability", false, "accept", "old", false, "not deleted: this MCP client cannot show approval requests", true},
		{"no such branch", true, "accept", "--all", false, `there is no branch "--all"`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo := exampletest.Repository(t)
			exampletest.Git(t, repo, "branch", "old")
			var questions []string
			client := exampletest.Peer(t, func(ctx context.Context, tr jsonrpc.Transport) error { return serve(ctx, tr, repo) }, tt.able,
				func(question string) (mcptypes.ElicitResultAction, error) {
					questions = append(questions, question)
					if tt.answer == "" {
						return "", jsonrpc.Errorf(jsonrpc.CodeInternalError, "no screen")
					}
					return tt.answer, nil
				})
			result := must.Get(mcptypes.ToolsCall.Call(t.Context(), client, &mcptypes.CallToolRequestParams{
				Name: "delete_branch", Arguments: fmt.Appendf(nil, `{"branch":%q}`, tt.branch),
			}))(t)
			if got := result.Content[0].(*mcptypes.TextContent).Text; !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q…", got, tt.want)
			}
			var want []string
			if tt.asked {
				want = []string{`Delete the branch "old" of ` + repo + "?"}
			}
			must.Equal(t, "questions", want, questions)
			if left := exampletest.Git(t, repo, "branch", "--list", "old"); (left != "") != tt.kept {
				t.Errorf("afterwards, branch --list prints %q", left)
			}
		})
	}
}

// TestRefused calls the tool before there is a client to ask, another tool, and the tool with wrong arguments.
func TestRefused(t *testing.T) {
	call := func(s *server, name, arguments string) (*mcptypes.CallToolResult, error) {
		return s.callTool(t.Context(), &mcptypes.CallToolRequestParams{Name: name, Arguments: []byte(arguments)})
	}
	s := &server{}
	if r, err := call(s, "delete_branch", `{"branch":"old"}`); err == nil {
		t.Errorf("before initialize: %+v", r)
	}
	must.Get(s.initialize(t.Context(), &mcptypes.InitializeRequestParams{}))(t)
	if r, err := call(s, "delete", `{"branch":"old"}`); err == nil {
		t.Errorf("another tool: %+v", r)
	}
	if r, err := call(s, "delete_branch", `{"branch":1}`); err != nil || r.IsError == nil || !*r.IsError {
		t.Errorf("wrong arguments: %+v, %v", r, err)
	}
	tools, err := s.listTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 1 || !*tools.Tools[0].Annotations.DestructiveHint {
		t.Errorf("%+v, %v", tools, err)
	}
}
