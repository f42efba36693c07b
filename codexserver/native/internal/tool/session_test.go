//go:build unix

package tool_test

import (
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestSession approves a command for the session in each sandbox mode. The same words in the same
// folder then run again without a question: in the sandbox, or outside with full access. Everything
// else is asked about.
func TestSession(t *testing.T) {
	const (
		asked   = "ask, begin, end 0"
		free    = "begin, end 0"
		stopped = "ask, begin, end 66"
		inside  = "ask: the sandbox stopped the command, which was allowed only inside; retry without sandbox?"
	)
	script := func(code int) []string { return []string{"sh", "-c", fmt.Sprintf("exit %d", code)} }
	for _, mode := range protocol.SandboxModes() {
		confined := func(code int) string { return fmt.Sprintf("begin, confined to %s, end %d", mode, code) }
		again, escape := confined(0), confined(66)+", "+inside
		if mode == protocol.SandboxDangerFullAccess {
			again, escape = free, "begin, end 66"
		}
		for _, tt := range []struct {
			name    string
			first   []string
			then    []string
			members string
			policy  func(*tool.Turn) // what changes before the second call
			want    [2]string
		}{
			{name: "the same", first: script(0), then: script(0), want: [2]string{asked, again}},
			{name: "that the sandbox stops", first: script(66), then: script(66), want: [2]string{stopped, escape}},
			{name: "other words", first: script(0), then: append(script(0), "x"), want: [2]string{asked, "ask"}},
			{name: "another folder", first: script(0), then: script(0), members: `,"workdir":"/"`, want: [2]string{asked, "ask"}},
			{name: "another sandbox", first: script(0), then: script(0), policy: func(t *tool.Turn) { t.SandboxPolicy.NetworkAccess = true }, want: [2]string{asked, "ask"}},
		} {
			t.Run(fmt.Sprintf("%s/%s", mode, tt.name), func(t *testing.T) {
				h := &host{answer: elicit.ApprovedForSession}
				turn := turnOf(tool.Options{Environ: environ, Sandbox: &fakeSandbox{host: h}}, h, t.TempDir(), "untrusted", mode)
				call := func(members string, argv []string) string {
					h.trace = nil
					called(t, turn, shellCall(t, members, argv...))
					return h.steps()
				}
				got := [2]string{call("", tt.first)}
				h.answer = elicit.Denied
				if tt.policy != nil {
					tt.policy(turn)
				}
				if got[1] = call(tt.members, tt.then); got != tt.want {
					t.Errorf("%q, want %q", got, tt.want)
				}
			})
		}
	}
}
