// Package memdir keeps the temporary files of tests in memory, where they are many and small: a file
// system on a disk looks long for a place for each. It gives the tests some memory for their garbage, too, and an
// environment that is the same on every machine.
package memdir

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv"
)

// Run runs the tests of a package. On Linux their temporary files are in /dev/shm, if it has 4 GiB
// and may hold programs, and $TMPDIR does not say where they are. Unless $GOGC says how often, garbage is
// collected rarely: what a test needs is small, so that the collector would run all the time. The environment is that of
// [testenv.Forget] and these entries.
func Run(m *testing.M, environ ...string) (code int) {
	testenv.Forget()
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		os.Setenv(name, value)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("TMPDIR") != "" || !fits("/dev/shm") {
		return m.Run()
	}
	dir, err := os.MkdirTemp("/dev/shm", "test")
	if err != nil {
		return m.Run()
	}
	defer os.RemoveAll(dir)
	if os.Chmod(dir, os.ModeSticky|0o777) == nil { // some tests run programs as other users
		os.Setenv("TMPDIR", dir)
	}
	return m.Run()
}
