package main

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestDeleteBranchAsksFirst(t *testing.T) {
	for _, tt := range []struct {
		name   string
		able   bool
		answer string // "" answers with an error
		branch string
		asked  int
		want   string
		kept   bool
	}{
		{"accept", true, "accept", "old", 1, "Deleted branch old", false},
		{"decline", true, "decline", "old", 1, "not deleted: declined", true},
		{"cancel", true, "cancel", "old", 1, "not deleted: the client cancelled the approval request", true},
		{"error", true, "", "old", 1, "not deleted: the client could not show the approval request", true},
		{"no capability", false, "accept", "old", 0,
			"not deleted: this MCP client cannot show approval requests", true},
		{"no such branch", true, "accept", "--all", 0, `there is no branch "--all"`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
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
			ours, theirs := mcp.NewInMemoryTransports()
			server, err := newServer(repo).Connect(ctx, theirs, nil)
			if err != nil {
				t.Fatal(err)
			}
			client, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, options).
				Connect(ctx, ours, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
			if err != nil {
				t.Fatal(err)
			}
			result, err := client.CallTool(ctx, &mcp.CallToolParams{Name: "delete_branch", Arguments: arguments{tt.branch}})
			if err != nil {
				t.Fatal(err)
			}
			if got := result.Content[0].(*mcp.TextContent).Text; !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q…", got, tt.want)
			}
			var want []string
			if tt.asked > 0 {
				want = []string{`Delete the branch "old" of ` + repo + "?"}
			}
			if diff := cmp.Diff(want, questions); diff != "" {
				t.Errorf("questions (-want +got):\n%s", diff)
			}
			if left := run(t, repo, "branch", "--list", "old"); (left != "") != tt.kept {
				t.Errorf("afterwards, branch --list prints %q", left)
			}
			if err := errors.Join(client.Close(), server.Wait()); err != nil {
				t.Error(err)
			}
		})
	}
}

// repository returns the folder of a new repository with the branches main and old.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, "init", "-q", "-b", "main")
	run(t, dir, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "--allow-empty", "-m", "first")
	run(t, dir, "branch", "old")
	return dir
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}
