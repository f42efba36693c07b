package box

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
)

var (
	// fileDenied matches what programs write when they are denied a file or a system call.
	fileDenied = lazyregexp.Regexp{Text: `(?i)permission denied|operation not permitted|read-only file system|permissionerror|\b(EACCES|EPERM|EROFS)\b`}
	// netDenied matches what programs write when they have no network.
	netDenied = lazyregexp.Regexp{Text: `(?i)network is unreachable|could not resolve|couldn't resolve|temporary failure in name resolution|` +
		`name or service not known|could not connect|couldn't connect|failed to connect|socket: operation not permitted|\bEAI_AGAIN\b|\bENETUNREACH\b`}
	// named matches the words of a message that may be paths: in quotes, with a slash, or right before the reason.
	named = lazyregexp.Regexp{Text: "['\"`‘“]([^'\"`’”]+)['\"`’”]|([^\\s:'\"`]*/[^\\s:'\"`]*)|([^\\s:]+): (?i:permission denied|operation not permitted|read-only file system)"}
)

// notExecutable is the exit code of shells for a program that may not be run, which a confinement does not cause.
const notExecutable = 126

// Denied reports whether a command failed because of its confinement. The kernel keeps no record that this process may
// read, so the command must report a denial and, if it names files, this process must be able to write one of them.
func (c *Confinement) Denied(r run.Result) bool {
	if r.ExitCode == 0 || r.ExitCode == notExecutable || r.TimedOut {
		return false
	}
	for line := range strings.Lines(r.Stderr + "\n" + r.Stdout) {
		if !c.policy.NetworkAccess && netDenied.Get().MatchString(line) || fileDenied.Get().MatchString(line) && c.explains(line) {
			return true
		}
	}
	return false
}

// explains reports whether the confinement may be the reason of a denial.
func (c *Confinement) explains(line string) bool {
	names := named.Get().FindAllStringSubmatch(line, -1)
	for _, groups := range names {
		path := groups[1] + groups[2] + groups[3]
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.cwd, path)
		}
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			path = filepath.Dir(path)
		}
		if hasAccess(path) {
			return true
		}
	}
	return len(names) == 0
}
