//go:build amd64 || arm64

package sandbox_test

import (
	"os/exec"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// TestEnclosureAsUser has an enclosure as a user without rights makes it, whose ids alone
// it can map.
func TestEnclosureAsUser(t *testing.T) {
	servertest.RunInSubprocess(t, func(cmd *exec.Cmd) {
		servertest.NeedEnclosure(t)
		dir := asUser(t, cmd, "/var/cache") // an enclosure has a /tmp of its own
		cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+dir, "HOME="+dir)
	}, func(t *testing.T) {
		t.Run("Enclosure", TestEnclosure)
		t.Run("Ends", TestEnclosureEnds)
		t.Run("Fails", TestEnclosureFails)
		t.Run("Try", TestTryEnclosure)
	})
}
