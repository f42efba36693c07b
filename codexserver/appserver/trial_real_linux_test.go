//go:build realcodex

package appserver_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealWithoutNamespaces runs turns of the real Codex where it can make no user namespaces: its sandbox runs no command, so under
// never the turn fails before the model is asked. Otherwise the turn says so, once, and works.
func TestRealWithoutNamespaces(t *testing.T) {
	t.Parallel()
	for policy, fails := range map[protocol.ApprovalPolicy]bool{protocol.ApprovalNever: true, protocol.ApprovalOnRequest: false} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			r := newReal(t, "sandbox_mode = \"workspace-write\"", providertest.Say("one"), providertest.Say("two"))
			r.options.Path = servertest.WithoutNamespaces(t, must.Get(appserver.Find(""))(t))
			r.restart(t)
			h := &recorder{}
			conv := r.start(t, h, protocol.Config{ApprovalPolicy: policy})
			remarks, want := 0, 0
			if !fails {
				want = 1
			}
			for range 2 {
				err := conv.Turn(t.Context(), text("go"))
				if (err != nil) != fails || err != nil && !strings.Contains(err.Error(), "nothing can run under the approval policy never: Codex's sandbox runs no command on this system: bwrap: ") {
					t.Errorf("the turn ended with %v", err)
				}
			}
			for _, m := range h.all() {
				if m, is := m.(protocol.BackgroundEvent); is && m.Remark && strings.Contains(m.Message, "it needs user namespaces") {
					remarks++
				}
			}
			must.Equal(t, "remarks", want, remarks)
			must.Equal(t, "requests to the model", 2*want, len(r.Requests()))
		})
	}
}
