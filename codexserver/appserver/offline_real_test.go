//go:build realcodex

package appserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// TestRealOffline has a provider at an address that refuses connections. Codex waits for the network without end, and says
// so after some seconds; the turn ends soon after that.
func TestRealOffline(t *testing.T) {
	t.Parallel()
	r := newReal(t, "")
	r.Close()
	r.options = &appserver.Options{CodexHome: r.home, Codex: setting.Codex{Reconnect: 3 * time.Second}}
	r.restart(t)
	conv := r.start(t, &recorder{}, protocol.Config{})
	begun := time.Now()
	err := conv.Turn(t.Context(), text("go"))
	if took := time.Since(begun); took > time.Minute || err == nil || !strings.Contains(err.Error(), "Codex has waited for the network for 3s") {
		t.Errorf("after %v: %v", took, err)
	}
}
