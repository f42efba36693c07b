// Package hosts has all that is decided by the name in a client's clientInfo: what is known of a host, and nothing
// that the host sends or does shows in time. A client chooses its name itself, so nothing here may let more run.
package hosts

import (
	"slices"
	"strings"
)

// CutsMessages reports whether a host shows only the first lines of a question, each cut at the edge of the terminal, with
// no way to see the rest. Claude Code 2.1.330 shows four lines, three of a longer question, and cuts six columns before the edge.
func CutsMessages(name string) bool { return name == "claude-code" }

// minute are the beginnings of the names of hosts that give up every call after a minute unless they are configured
// otherwise: the first call would be lost before that shows. @cline/core, codex-mcp-client and continue-cli-client were measured.
var minute = []string{"@cline/core", "Cline", "codex-mcp-client", "continue-cli-client", "continue-client"}

// EndsCallsAfterMinute reports whether a host gives up every call after a minute, whatever the call reports.
func EndsCallsAfterMinute(name string) bool {
	return slices.ContainsFunc(minute, func(begin string) bool { return strings.HasPrefix(name, begin) })
}
