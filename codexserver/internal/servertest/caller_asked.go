package servertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// TestAskedCalls approves what a call asks for, once: it holds for the conversation on this server, and
// in a server that starts later the conversation has no more than the configuration gives. One in share of the calls is made.
func (e *HostileEngine) TestAskedCalls(t *testing.T, share int) {
	const full = `"sandbox":"danger-full-access","approval-policy":"never"`
	approves, yards := After(considered, Accept), NewYards(t)
	for n, tt := range []struct {
		name, arguments string
		questions       int  // -1 is some
		writes, again   bool // outside, in the first turn, and in one of another server
		access          setting.FullAccess
		answer          Answer
	}{
		{"approved", full, 1, true, false, "", approves},
		{"allowed by the settings", full, 0, true, true, setting.FullAccessAllow, nil},
		{"refused by the settings", full, 0, false, false, setting.FullAccessDeny, approves},
		{"the start folder", `"sandbox":"workspace-write","approval-policy":"never","cwd":"START"`, 0, false, false, "", approves},
		{"less", `"sandbox":"read-only","approval-policy":"untrusted"`, -1, false, false, "", Say(Decline)}, // about commands and a patch
		{"nothing", `"approval-policy":"never"`, 0, false, false, "", approves},
	} {
		if n%share != 0 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			y := yards.New(t, Confined, e.Model)
			thread := ""
			t.Run("asked", func(t *testing.T) {
				id := y.ID()
				c := Connect(t, e.Open(t, y)(time.Minute, tt.access), tt.answer)
				result := c.CallTool(t, "codex", y.In(fmt.Sprintf(`{"prompt":%q,%s}`, id, tt.arguments)))
				asked := len(c.Received("elicitation/create"))
				if tt.questions < 0 && asked == 0 || tt.questions >= 0 && asked != tt.questions {
					t.Errorf("%d questions, want %d: %s", asked, tt.questions, result)
				}
				if got := y.Written(id); len(got) > 0 != tt.writes {
					t.Errorf("written: %q\n%s", got, result)
				}
				if tt.access == setting.FullAccessDeny {
					if !strings.Contains(result, `calls.full_access = \"deny\" refuses it`) {
						t.Error(result)
					}
					return
				}
				thread, id = ThreadOf(t, result), y.ID()
				result = c.CallTool(t, "codex-reply", fmt.Sprintf(`{"prompt":%q,"threadId":%q}`, id, thread))
				if got := y.Written(id); len(got) > 0 != tt.writes {
					t.Errorf("written in a second turn: %q\n%s", got, result)
				}
				if again := len(c.Received("elicitation/create")); tt.writes && again != asked {
					t.Errorf("asked again: %d", again)
				}
			})
			if thread == "" {
				return
			}
			id := y.ID()
			c := Connect(t, e.Open(t, y)(time.Minute, tt.access), Say(Decline))
			result := c.CallTool(t, "codex-reply", fmt.Sprintf(`{"prompt":%q,"threadId":%q}`, id, thread))
			if got := y.Written(id); len(got) > 0 != tt.again {
				t.Errorf("written after a restart: %q\n%s", got, result)
			}
			if y.Requests(id) == 0 {
				t.Errorf("no turn after a restart: %s", result)
			}
		})
	}
}
