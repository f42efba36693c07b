//go:build realcodex

package appserver_test

import (
	"context"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealSetupInstalls has npm install what a worktree needs, from a registry that no command in the sandbox of the real Codex
// reaches: it leaves that once, if a person lets it.
func TestRealSetupInstalls(t *testing.T) {
	url, line := servertest.Registry(t, t.TempDir())
	for name, tt := range map[string]struct {
		configuration string
		answer        elicit.Decision
		asked         int
		status        protocol.TurnStatus
	}{
		"let out":     {"approval_policy = \"on-request\"\n", elicit.Approved, 1, protocol.StatusCompleted},
		"not let out": {"approval_policy = \"on-request\"\n", elicit.Denied, 1, protocol.StatusFailed},
		"never":       {"approval_policy = \"never\"\n", elicit.Approved, 0, protocol.StatusFailed},
		"with network": {"approval_policy = \"never\"\n[sandbox_workspace_write]\nnetwork_access = true\n", elicit.Denied, 0,
			protocol.StatusCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOME", t.TempDir())
			r := newReal(t, "sandbox_mode = \"workspace-write\"\n"+tt.configuration, providertest.Say("done"))
			servertest.Install(t, r.cwd, url)
			var asked []string
			s := codexserver.New(r.engine, &codexserver.Options{Home: r.home, Folder: r.cwd, Calls: setting.Calls{Setup: line}})
			c := must.Get(client.Start(t.Context(), &client.Options{Server: s, Ask: func(_ context.Context, q *client.Question) elicit.Outcome {
				asked = append(asked, q.Message)
				return elicit.Outcome{Decision: tt.answer}
			}}))(t)
			did := must.Get(c.Run(t.Context(), client.Task{Prompt: "go", Arguments: map[string]any{"worktree": true}}))(t)
			must.OK(t, c.Close())
			must.Equal(t, "status of "+did.Content, tt.status, did.Status)
			works := tt.status == protocol.StatusCompleted
			must.Equal(t, "requests to the model", map[bool]int{true: 1, false: 0}[works], len(r.Requests()))
			servertest.Installed(t, did.Worktree.Path, works)
			must.Equal(t, "questions", tt.asked, len(asked))
			if all := strings.Join(asked, "\n"); tt.asked > 0 && !strings.Contains(all, "the sandbox stopped the set-up of the worktree") {
				t.Errorf("asked %s", all)
			}
		})
	}
}
