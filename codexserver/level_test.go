package codexserver_test

import (
	"slices"
	"testing"
	"testing/synctest"

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
				old := connect(t, asking, nil, nil) // who cannot be asked is warned
				if _, err := mcptypes.LoggingSetLevel.Call(t.Context(), old, &mcptypes.SetLevelRequestParams{Level: level}); err != nil {
					t.Fatal(err)
				}
				if _, _, err := old.call(t.Context(), "codex", map[string]any{"prompt": "p"}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				old.mu.Lock()
				defer old.mu.Unlock()
				if got := slices.Contains(old.logs, "warning"); got != want {
					t.Errorf("warned %v", got)
				}
			})
		})
		t.Run("none/"+string(level), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &worker{}
				c := connectModern(t, w.engine(), nil)
				c.capabilities, c.level = noForms, string(level)
				c.codex("git")
				if got := c.told("1")["notifications/message"] > 0; got != want {
					t.Errorf("warned %v", got)
				}
			})
		})
	}
}
