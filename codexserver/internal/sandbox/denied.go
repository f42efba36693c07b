package sandbox

import (
	"regexp"

	"github.com/codexmcp/codexmcp/codexserver/internal/command"
)

// denialText are the words of programs that were denied something that a
// confinement denies.
var denialText = regexp.MustCompile(`(?i)permission denied|operation not permitted|read-only file system|\bE(ACCES|PERM|ROFS)\b|` +
	`PermissionError|access is denied|not permitted|` +
	`network is unreachable|could not resolve host|temporary failure in name resolution|name or service not known|could not connect to|failed to connect to`)

// Denied says whether a command failed because of its confinement, as far as
// its output tells: the kernel keeps no account that its owner may read.
func (c *Confinement) Denied(r command.Result) bool {
	if r.ExitCode == 0 || r.TimedOut {
		return false
	}
	return denialText.MatchString(r.Stderr) || denialText.MatchString(r.Stdout)
}
