package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Clients of both eras play the same: the new one repeats its call, the old one
// answers a request.
func TestDeleteBranchAsksFirst(t *testing.T) {
	for _, tt := range []struct {
		name   string
		able   bool
		answer string // "" fails
		branch string
		asked  int
		want   string // "" is an error of the call
		kept   bool
	}{
		{"accept", true, "accept", "old", 1, "Deleted branch old", false},
		{"decline", true, "decline", "old", 1, "not deleted: declined", true},
		{"cancel", true, "cancel", "old", 1, "not deleted: the client cancelled the approval request", true},
		{"error", true, "", "old", 1, "", true},
		{"no capability", false, "accept", "old", 0,
			"not deleted: this MCP client cannot show approval requests", true},
		{"no such branch", true, "accept", "--all", 0, `there is no branch "--all"`, true},
	} {
		for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
			t.Run(tt.name+"/"+version, func(t *testing.T) {
				repo := repository(t)
				var questions []string
				options := &mcp.ClientOptions{}
				if tt.able {
					options.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						questions = append(questions, r.Params.Message)
						if tt.answer == "" {
							return nil, errors.New("no screen")
						}
						return &mcp.ElicitResult{Action: tt.answer}, nil
					}
				}
				client := connect(t, repo, version, options)
				result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "delete_branch", Arguments: arguments{tt.branch}})
				if (err != nil) != (tt.want == "") {
					t.Fatal(err)
				}
				if err == nil && !strings.HasPrefix(textOf(result), tt.want) {
					t.Errorf("got %q, want %q…", textOf(result), tt.want)
				}
				var want []string
				if tt.asked > 0 {
					want = []string{`Delete the branch "old" of ` + repo + "?"}
				}
				if diff := cmp.Diff(want, questions); diff != "" {
					t.Errorf("questions (-want +got):\n%s", diff)
				}
				if left := run(t, repo, "branch", "--list", "old"); (left != "") != tt.kept {
					t.Errorf("after it, branch --list says %q", left)
				}
			})
		}
	}
}
