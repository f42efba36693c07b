package box

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/text"
)

var (
	// fileDenied matches what programs write when they are denied a file or a system call.
	fileDenied = lazyregexp.Regexp{Text: `(?i)permission denied|operation not permitted|read-only file system|` +
		`permissionerror|\b(EACCES|EPERM|EROFS)\b`}
	// netDenied matches what programs write when they have no network.
	netDenied = lazyregexp.Regexp{Text: `(?i)network is unreachable|could not resolve|couldn't resolve|temporary ` +
		`failure in name resolution|` +
		`name or service not known|could not connect|couldn't connect|failed to connect|socket: operation not ` +
		`permitted|\bEAI_AGAIN\b|\bENETUNREACH\b`}
	// named matches the words of a message that may be paths: in quotes, with a slash, or right before the reason.
	named = lazyregexp.Regexp{Text: "['\"`‘“]([^'\"`’”]+)['\"`’”]|([^\\s:'\"`]*/[^\\s:'\"`]*)|([^\\s:]+): " +
		"(?i:permission denied|operation not permitted|read-only file system)"}
	// ownThings matches words about what commands have with rooms alone.
	ownThings = lazyregexp.Regexp{Text: `(?i)socket|listen|bind|127\.0\.0\.1|localhost|/dev/|pty|semaphore|semget|shm`}
	// ownFolder matches the folder of a program in a path below the home.
	ownFolder = lazyregexp.Regexp{Text: `^(?:(?:\.cache|\.config|Library)/)?[^/]+`}
)

// notExecutable is the exit code of shells for a program that may not be run, which a confinement does not cause.
const notExecutable = 126

// Denied returns why a command failed, if that was because of its confinement, see [Denial].
func (c *Confinement) Denied(r run.Result) string {
	words := Denial(c.policy.NetworkAccess, c.cwd, r)
	if c.helper == nil && runtime.GOOS == "linux" && ownThings.Get().MatchString(words) && RoomsAvailable() != nil {
		words += "; this system gives commands no loopback, terminals and shared memory of their own, and codex-mcp " +
			"doctor says why"
	}
	return words
}

// Forbidden says which file a command failed to read that the user's profile denies, so that nobody is asked about it; "" if
// none.
func (c *Confinement) Forbidden(r run.Result) string {
	if c.set == nil || r.ExitCode == 0 {
		return ""
	}
	for line := range strings.Lines(r.Stderr + "\n" + r.Stdout) {
		if !fileDenied.Get().MatchString(line) {
			continue
		}
		for _, path := range pathsIn(line, c.cwd) {
			if err := c.set.Check(paths.Real(path)); err != nil {
				return err.Error() + "; nobody is asked to allow it"
			}
		}
	}
	return ""
}

// Denial says why a command failed, if that was because of its confinement, which it had in the folder cwd, with a network
// or without one, and what would let it do what it tried: the network, or a writable folder. Otherwise it returns "". The
// kernel keeps no record that this process may read, so the command must report a denial and, if it names files, this
// process must be able to write one of them. The words have a line of its output, which who shows them makes safe.
func Denial(network bool, cwd string, r run.Result) string {
	if r.ExitCode == 0 || r.ExitCode == notExecutable || r.TimedOut {
		return ""
	}
	for line := range strings.Lines(r.Stderr + "\n" + r.Stdout) {
		words := "the sandbox stopped it: " + text.Brief(strings.TrimSpace(line), 400)
		switch {
		case !network && netDenied.Get().MatchString(line):
			return words + "; network_access of [sandbox_workspace_write] gives commands the network"
		case fileDenied.Get().MatchString(line) && explains(line, cwd):
			return words + remedy(line, cwd)
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

// remedy names the folder of a program in the home, such as ~/.cache/go-build, that would have to be writable; "" if a line
// names none.
func remedy(line, cwd string) string {
	home, _ := os.UserHomeDir()
	for _, path := range pathsIn(line, cwd) {
		rel, ok := paths.Within(path, home)
		if ok && rel != "." && !paths.Below(path, cwd) && hasAccess(path) {
			return "; writable_roots of [sandbox_workspace_write] can name " +
				filepath.Join(home, ownFolder.Get().FindString(filepath.ToSlash(rel)))
		}
	}
	return ""
}
