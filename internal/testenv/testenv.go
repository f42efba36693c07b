// Package testenv tells tests what the system has that runs them. On Linux a test fails when it lacks what it needs.
// On Windows it is skipped: Windows has no modes, few users may make links, and Wine has neither git nor a shell.
package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

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
	dir, err := os.MkdirTemp("", "home")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Path returns an absolute path of Unix as this system writes it: on Windows on the drive C.
func Path(path string) string {
	if runtime.GOOS == "windows" && strings.HasPrefix(path, "/") {
		path = "C:" + path
	}
	return filepath.FromSlash(path)
}
