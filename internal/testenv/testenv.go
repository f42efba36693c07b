// Package testenv tells tests what the system has that runs them. On Linux a test fails when it lacks what it needs.
// On Windows it is skipped: Windows has no modes, few users may make links, and Wine has neither git nor a shell.
package testenv

import (
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// kept are the variables that remain of a user's: those of the system and of Go, and those for tests, which have _TEST in
// their names.
var kept = regexp.MustCompile(`(?i)^(PATH|HOME|TMPDIR|TZ|LD_LIBRARY_PATH|CC|CI|(GO|CGO_)\w*|` +
	`CODEXMCP_\w+|CODEX_(BIN|NPM)|\w+_TEST\w*|` +
	`SYSTEM(ROOT|DRIVE)|WINDIR|COMSPEC|PATHEXT|TE?MP|USERPROFILE|(LOCAL)?APPDATA|PROGRAM\w+|` +
	`(NUMBER_OF_)?PROCESSORS?\w*|OS)$`)

// Forget takes from this process what its user has for other programs, which the tests, and programs that they start,
// would obey: variables, ignored signals, and the modes of new files.
// Temporary files go elsewhere if scripts would have to quote their paths. Folders of PATH that commands in a sandbox
// can write, such as that of a Go in a temporary one, come last: questions name what hides another program there.
func Forget() {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); !kept.MatchString(name) {
			os.Unsetenv(name)
		}
	}
	if !Plain(os.TempDir()) {
		os.Unsetenv("TMPDIR")
	}
	for _, sig := range []os.Signal{syscall.SIGHUP, os.Interrupt} { // as under nohup and in the background of a script
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	var path, last []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if strings.HasPrefix(dir, os.TempDir()) || strings.HasPrefix(dir, "/tmp/") {
			last = append(last, dir)
		} else {
			path = append(path, dir)
		}
	}
	os.Setenv("PATH", strings.Join(append(path, last...), string(filepath.ListSeparator)))
	os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	usualModes()
}

// Plain reports whether a path is one word of a script.
func Plain(path string) bool {
	return !strings.ContainsFunc(path, func(r rune) bool {
		return r > '~' ||
			strings.ContainsRune(" \t\n\"'`$&*?[](){}<>|;", r)
	})
}

// WriteProgram writes a program. No process starts while the file is open: it would have the file open, too, until it executes its
// own program, and the system runs no program that is open for writing.
func WriteProgram(path string, text []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, text, 0o755)
}

// Nobody returns an address of this machine at which nobody listens before the test ends: that of a connection's other end.
func Nobody(t testing.TB) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	c := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	t.Cleanup(func() { c.Close() })
	return c.LocalAddr().String()
}

// NeedsPrograms skips the test on Windows if one of these programs is not in the PATH.
func NeedsPrograms(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			skip(t, "there is no "+name)
		}
	}
}

// NeedsLinks skips the test on Windows if it cannot make symbolic links. Wine makes none, and reports no error.
func NeedsLinks(t testing.TB) {
	t.Helper()
	link := filepath.Join(t.TempDir(), "link")
	err := os.Symlink("target", link)
	if err == nil {
		_, err = os.Readlink(link)
	}
	if err != nil {
		skip(t, "symbolic links cannot be made")
	}
}

// NeedsUnix skips the test on Windows, with a reason: what Unix has that the test is about.
func NeedsUnix(t testing.TB, reason string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("this is not Unix: " + reason)
	}
}

// Reasons of [NeedsUnix] that several tests have.
const (
	Modes     = "files have modes"
	OpenFiles = "an open file can be renamed and removed"
	Names     = "a name has * and quotes"
	Paths     = "paths begin with /"
	Sandbox   = "there is a sandbox"
	Quotes    = "words are quoted as sh reads them"
)

func skip(t testing.TB, reason string) {
	t.Helper()
	if runtime.GOOS != "windows" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// SetHome makes a folder the user's home. With "" there is none.
func SetHome(t testing.TB, dir string) {
	t.Helper()
	t.Setenv("HOME", dir)
	t.Setenv("USERPROFILE", dir)
}

// Home returns a folder for what a server of this process keeps. Tasks are locked until the process ends: Windows
// removes such a folder no sooner, so there it remains.
func Home(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "windows" {
		return t.TempDir()
	}
	return must.Get(os.MkdirTemp("", "home"))(t)
}

// Path returns an absolute path of Unix as this system writes it: on Windows on the drive C.
func Path(path string) string {
	if runtime.GOOS == "windows" && strings.HasPrefix(path, "/") {
		path = "C:" + path
	}
	return filepath.FromSlash(path)
}
