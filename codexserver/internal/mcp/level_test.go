package mcp_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestLogLevels sets each level in both eras. A warning is sent to clients that want warnings
// or more, but not to those that want only what is worse.
func TestLogLevels(t *testing.T) {
	for level, want := range map[mcptypes.LoggingLevel]bool{
		"debug": true, "info": true, "notice": true, "warning": true,
		"error": false, "critical": false, "alert": false, "emergency": false,
	} {
		for _, era := range []servertest.Era{servertest.Handshake, servertest.Rounds} {
			t.Run(string(era)+"/"+string(level), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { // who cannot be asked is warned
					h := servertest.Host{Era: era}
					if era == servertest.Rounds {
						h.Meta = fmt.Sprintf(`"io.modelcontextprotocol/logLevel":%q`, level)
					}
					c := servertest.Join(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil), h)
					if era == servertest.Handshake {
						c.Ask(t, "logging/setLevel", fmt.Sprintf(`{"level":%q}`, level))
					}
					c.Use(t.Context(), "codex", `{"prompt":"p"}`)
					synctest.Wait()
					if got := len(c.Received("notifications/message")) > 0; got != want {
						t.Errorf("warned %v", got)
					}
				})
			})
		}
	}
}
