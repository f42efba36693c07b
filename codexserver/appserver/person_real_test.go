//go:build realcodex

package appserver_test

import (
	"context"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealPerson has a person decide where config.toml, and a trusted call, have a model: in a new thread, in a
// resumed one, and in one that another process of Codex resumes.
func TestRealPerson(t *testing.T) {
	t.Parallel()
	r := newReal(t, "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"\napprovals_reviewer = \"auto_review\"",
		escalated("c1"), report, escalated("c2"), report, escalated("c3"), report)
	r.options = &appserver.Options{CodexHome: r.home, Codex: setting.Codex{Reviewer: setting.ReviewerPerson}}
	r.restart(t)
	asked := 0
	h := &recorder{exec: func(context.Context, approval.Command) elicit.Outcome {
		asked++
		return elicit.Outcome{Decision: elicit.Denied}
	}}
	cfg := protocol.Config{Overrides: raw("approvals_reviewer", `"auto_review"`)}
	conv := r.start(t, h, cfg)
	for n, next := range []func() engine.Conversation{
		func() engine.Conversation { return conv },
		func() engine.Conversation { return r.resume(t, conv, h, cfg) },
		func() engine.Conversation { r.restart(t); return r.resume(t, conv, h, cfg) },
	} {
		must.OK(t, next().Turn(t.Context(), text("go")))
		must.Equal(t, "questions", n+1, asked)
		if made(r) {
			t.Error("what was denied ran")
		}
	}
}
