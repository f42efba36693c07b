package native_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestSentences plays what README.md promises about approvals under the defaults of the native engine: a person
// is asked each time before a command leaves the sandbox, only a clear approval counts, no question stays
// open for ever, and the model learns why something did not run.
func TestSentences(t *testing.T) {
	boxtest.Need(t)
	for _, tt := range []struct {
		name, answer string
		runs         bool
		told         string // what the model learns
	}{
		{"accepted", `{"action":"accept"}`, true, ""},
		{"accepted for the session", servertest.ForSession, true, ""},
		{"declined", servertest.Decline, false, "declined"},
		{"declined, and accepted", `{"action":"decline","Action":"accept"}`, false, "not understood"},
		{"accepted, and denied", `{"action":"accept","content":{"decision":"denied"}}`, false, "declined"},
		{"of another kind", `{"action":"yes"}`, false, "not understood"},
		{"nothing", `{}`, false, "not understood"},
		{"none in time", "", false, "no answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			provider := providertest.New()
			y := servertest.NewYards(t).New(t, "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"", func(t testing.TB, _ func([]byte) servertest.Step) string {
				t.Cleanup(provider.Close)
				return provider.BaseURL()
			})
			made := filepath.Join(y.Other, "made")
			for range 2 {
				provider.Add(
					providertest.Call(providertest.Tool("c1", "shell", map[string]any{
						"command": []string{"sh", "-c", fmt.Sprintf("echo x >> %q", made)}, "with_escalated_permissions": true, "justification": "to see",
					})),
					providertest.Say("done"),
				)
			}
			answer := servertest.Say(tt.answer)
			if tt.answer == "" {
				answer = servertest.Never
			}
			c := servertest.Connect(t, hostileEngine.Open(t, y)(400*time.Millisecond, ""), answer)
			thread := servertest.ThreadOf(t, c.CallTool(t, "codex", `{"prompt":"go"}`))
			c.CallTool(t, "codex-reply", `{"prompt":"again","threadId":"`+thread+`"}`)
			diff(t, "questions", 2, len(c.Received("elicitation/create")))
			diff(t, "runs", map[bool]int{true: 2}[tt.runs], count(t, made)["x"])
			inOrder(t, lastRequest(&bench{provider: provider}), tt.told)
		})
	}
}
