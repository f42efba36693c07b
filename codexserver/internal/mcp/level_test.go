package mcp_test

import (
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
		t.Run("handshake/"+string(level), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old := servertest.Connect(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil), nil) // who cannot be asked is warned
				if _, err := mcptypes.LoggingSetLevel.Call(t.Context(), old, &mcptypes.SetLevelRequestParams{Level: level}); err != nil {
					t.Fatal(err)
				}
				old.CallTool(t, "codex", `{"prompt":"p"}`)
				synctest.Wait()
				if got := len(old.Received("notifications/message")) > 0; got != want {
					t.Errorf("warned %v", got)
				}
			})
		})
		t.Run("none/"+string(level), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &servertest.Worker{}
				c := connectModern(t, w.Engine(), nil)
				c.capabilities, c.level = noForms, string(level)
				c.codex("git")
				if got := c.told("1")["notifications/message"] > 0; got != want {
					t.Errorf("warned %v", got)
				}
			})
		})
	}
}
