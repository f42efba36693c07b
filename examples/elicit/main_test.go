package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

func TestDeleteBranchAsksFirst(t *testing.T) {
	able := mcptypes.ClientCapabilities{Elicitation: map[string]json.RawMessage{}}
	for _, tt := range []struct {
		name         string
		capabilities mcptypes.ClientCapabilities
		answer       mcptypes.ElicitResultAction // "" answers with an error
		branch       string
		asked        int
		want         string
		kept         bool
	}{
		{"accept", able, "accept", "old", 1, "Deleted branch old", false},
		{"decline", able, "decline", "old", 1, "not deleted: declined", true},
		{"cancel", able, "cancel", "old", 1, "not deleted: the client cancelled the approval request", true},
		{"error", able, "", "old", 1, "not deleted: the client could not show the approval request", true},
		{"no capability", mcptypes.ClientCapabilities{}, "accept", "old", 0,
			"not deleted: this MCP client cannot show approval requests", true},
		{"no such branch", able, "accept", "--all", 0, `there is no branch "--all"`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo := repository(t)
			var questions []string
			client := connect(t, repo, tt.capabilities, func(question string) (*mcptypes.ElicitResult, error) {
				questions = append(questions, question)
				if tt.answer == "" {
					return nil, jsonrpc.Errorf(jsonrpc.CodeInternalError, "no screen")
				}
				return &mcptypes.ElicitResult{Action: tt.answer}, nil
			})
			result := must.Get(mcptypes.ToolsCall.Call(t.Context(), client, &mcptypes.CallToolRequestParams{
				Name: "delete_branch", Arguments: fmt.Appendf(nil, `{"branch":%q}`, tt.branch),
			}))(t)
			if got := result.Content[0].(*mcptypes.TextContent).Text; !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q…", got, tt.want)
			}
			var want []string
			if tt.asked > 0 {
				want = []string{`Delete the branch "old" of ` + repo + "?"}
			}
			must.Equal(t, "questions", want, questions)
			if left := git(t, repo, "branch", "--list", "old"); (left != "") != tt.kept {
				t.Errorf("afterwards, branch --list prints %q", left)
			}
		})
	}
}

// connect serves the example on a pipe and initializes a client.
func connect(t *testing.T, repo string, c mcptypes.ClientCapabilities, answer func(string) (*mcptypes.ElicitResult, error)) *jsonrpc.Peer {
	t.Helper()
	ours, theirs := jsonrpc.Pipe()
	served := make(chan error, 1)
	go func() { served <- serve(context.Background(), theirs, repo) }()
	mux := &jsonrpc.Mux{}
	mcptypes.ElicitationCreate.Handle(mux, func(_ context.Context, p *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
		return answer(p.Message)
	})
	client := jsonrpc.NewPeer(ours, mux, nil)
	go func() { _ = client.Run(context.Background()) }()
	t.Cleanup(func() {
		_ = client.Close()
		<-client.Done()
		if err := <-served; err != nil {
			t.Error("served:", err)
		}
	})
	must.Get(mcptypes.Initialize.Call(t.Context(), client, &mcptypes.InitializeRequestParams{
		ProtocolVersion: mcptypes.ProtocolVersion, Capabilities: c, ClientInfo: mcptypes.Implementation{Name: "t", Version: "1"},
	}))(t)
	return client
}

// repository returns the folder of a new repository with the branches main and old.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "--allow-empty", "-m", "first")
	git(t, dir, "branch", "old")
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	testenv.NeedsPrograms(t, "git")
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}
