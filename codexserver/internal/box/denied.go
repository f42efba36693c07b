package box

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/text"
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

// Denied reports whether a command failed because of its confinement, see [Denial].
func (c *Confinement) Denied(r run.Result) bool {
	return Denial(c.policy.NetworkAccess, c.cwd, r) != ""
}

// Denial returns the line of output that shows that a command failed because of its confinement, which it had in the folder
// cwd, with a network or without one; else "". The kernel keeps no record that this process may read, so the command must
// report a denial and, if it names files, this process must be able to write one of them.
func Denial(network bool, cwd string, r run.Result) string {
	if r.ExitCode == 0 || r.ExitCode == notExecutable || r.TimedOut {
		return ""
	}
	for line := range strings.Lines(r.Stderr + "\n" + r.Stdout) {
		if !network && netDenied.Get().MatchString(line) || fileDenied.Get().MatchString(line) && explains(line, cwd) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// Offline reports whether a command has failed and says that it has no network.
func Offline(r run.Result) bool {
	return r.ExitCode != 0 && netDenied.Get().MatchString(r.Stderr+"\n"+r.Stdout)
}

// explains reports whether a confinement may be the reason of a denial.
func explains(line, cwd string) bool {
	named := pathsIn(line, cwd)
	return len(named) == 0 || slices.ContainsFunc(named, hasAccess)
}

// pathsIn returns what may be paths in a line: each of a file that is there, or of its folder.
func pathsIn(line, cwd string) (all []string) {
	for _, groups := range named.Get().FindAllStringSubmatch(line, -1) {
		path := groups[1] + groups[2] + groups[3]
		if !filepath.IsAbs(path) {
			path = filepath.Join(cwd, path)
		}
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			path = filepath.Dir(path)
		}
		all = append(all, path)
	}
	return all
}

// DenialWords says of a line of [Denial] what would let the command do it: the network, or a writable folder. Who shows
// the words makes the line, which is a stranger's, safe.
func DenialWords(line, cwd string) string {
	words := "the sandbox stopped it: " + text.Brief(line, 400)
	if netDenied.Get().MatchString(line) {
		return words + "; network_access of [sandbox_workspace_write] gives commands the network"
	}
	home, _ := os.UserHomeDir()
	for _, path := range pathsIn(line, cwd) {
		if folder := ownFolder(path, home); folder != "" && !paths.Below(path, cwd) && hasAccess(path) {
			return words + "; writable_roots of [sandbox_workspace_write] can name " + folder
		}
	}
	return words
}

// ownFolder returns the folder of a program in the home that has a path, such as ~/.cache/go-build or ~/.npm; "" elsewhere.
func ownFolder(path, home string) string {
	rel, ok := paths.Within(path, home)
	if !ok || rel == "." {
		return ""
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	n := 1
	if len(parts) > 1 && slices.Contains([]string{".cache", ".config", "Library"}, parts[0]) {
		n = 2
	}
	return filepath.Join(append([]string{home}, parts[:n]...)...)
}
