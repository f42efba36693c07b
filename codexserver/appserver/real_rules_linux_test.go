//go:build realcodex

package appserver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/nightly"
)

// TestRealRules has a command run twice about which rules of Codex want a question, an
// administrator's or those of docs/rules.md in the user's folder. Codex would run it in the sandbox
// without one. Each time is asked, and only a question that says so needs a person.
func TestRealRules(t *testing.T) {
	needs(t, newQuestions)
	const (
		person = "[rules]\nprefix_rules = [{pattern = [{token = \"touch\"}], decision = \"prompt-user\"}]\n"
		anyone = "[rules]\nprefix_rules = [{pattern = [{token = \"touch\"}], decision = \"prompt\"}]\n"
		ours   = "prefix_rule(pattern = [\"touch\"], decision = \"prompt\")\n"
		allows = "prefix_rule(pattern = [\"touch\"], decision = \"allow\")\n"
	)
	const writes, anywhere, auto, never = `sandbox_mode = "workspace-write"`, `sandbox_mode = "danger-full-access"`, "\napprovals_reviewer = \"auto_review\"", "approval_policy = \"never\"\n"
	for n, tt := range []struct {
		name            string
		required, rules string // an administrator's, the user's
		configuration   string
		decides         elicit.Decision
		asked           int
		human, made     bool
	}{
		{"no rule", "", "", writes, elicit.Denied, 0, false, true},
		{"a person approves for the session", person, "", writes, elicit.ApprovedForSession, 2, true, true},
		{"a person approves always", person, "", anywhere, elicit.ApprovedAlways, 2, true, false},
		{"a person declines though a model reviews and the user allows", person, allows, writes + auto, elicit.Denied, 2, true, false},
		{"a person cancels", person, "", writes, elicit.Abort, 1, true, false},
		{"anyone declines", anyone, "", writes, elicit.Denied, 2, false, false},
		{"the user's rule approved", "", ours, writes, elicit.Approved, 2, false, true},
		{"the user's rule declined without a sandbox though another allows", "", allows + ours, anywhere, elicit.Denied, 2, false, false},
		{"the user's rule but nobody is to be asked", "", ours, never + anywhere, elicit.Approved, 0, false, false},
	} {
		if !nightly.Tests() && n%3 == 1 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			touch := func(id string) providertest.Turn {
				return providertest.Call(providertest.Tool(id, "exec_command", map[string]any{"cmd": "touch made.txt"}))
			}
			r := newReal(t, tt.configuration, touch("c1"), touch("c2"), report)
			if tt.rules != "" {
				if err := os.Mkdir(filepath.Join(r.home, "rules"), 0o700); err != nil {
					t.Fatal(err)
				}
				writeFile(t, filepath.Join(r.home, "rules", "default.rules"), tt.rules)
				r.restart(t)
			}
			if tt.required != "" {
				r.manage(t, tt.required)
			}
			var asked []protocol.ExecApprovalRequest
			h := &recorder{exec: func(_ context.Context, q protocol.ExecApprovalRequest) elicit.Outcome {
				asked = append(asked, q)
				return elicit.Outcome{Decision: tt.decides}
			}}
			err := r.start(t, h, protocol.Config{}).Turn(t.Context(), text("go"))
			if (err != nil) != (tt.decides == elicit.Abort) {
				t.Error(err)
			}
			got := fmt.Sprintf("asked %d, human %t, made %t", len(asked), len(asked) > 0 && asked[0].Human, made(r))
			if want := fmt.Sprintf("asked %d, human %t, made %t", tt.asked, tt.human, tt.made); got != want {
				t.Errorf("%s, want %s: %q, %v", got, want, h.answer(), h.types())
			}
			for _, q := range asked {
				if q.Human != tt.human || !q.Once {
					t.Errorf("asked %+v", q)
				}
			}
		})
	}
}
