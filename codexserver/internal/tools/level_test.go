package tools_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/mcptypes"
)

func TestLogs(t *testing.T) {
	levels := []mcptypes.LoggingLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"} // of RFC 5424
	for i, least := range levels {
		for j, l := range levels {
			if got := tools.Logs(least, l); got != (j >= i) {
				t.Errorf("from %s on, %s: %v", least, l, got)
			}
		}
	}
}
