package boxtest

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// subprocess names, in a process that RunInSubprocess started, the test that it runs.
const subprocess = "CODEX_MCP_TEST_SUBPROCESS"

// RunInSubprocess runs the given test function in a process of its own. The process is the
// test's program, started again for this test only; change, unless it is nil, changes it
// before it starts. The test passes, fails or is skipped as the function is there.
func RunInSubprocess(t *testing.T, change func(*exec.Cmd), f func(t *testing.T)) {
	t.Helper()
	if os.Getenv(subprocess) == t.Name() {
		f(t)
		return
	}
	program := "/proc/self/exe" // also for a user who cannot reach the file
	if runtime.GOOS != "linux" {
		program = os.Args[0]
	}
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
	cmd := exec.CommandContext(t.Context(), program, "-test.run="+pattern, "-test.v", fmt.Sprint("-test.short=", testing.Short()))
	// With the race detector, a process sleeps for a second before it ends.
	cmd.Env = append(os.Environ(), subprocess+"="+t.Name(), "GORACE=atexit_sleep_ms=0")
	if change != nil {
		change(cmd)
	}
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil && strings.Contains(string(out), "--- PASS: "+t.Name()+" "):
		if testing.Verbose() {
			t.Logf("in a process of its own:\n%s", out)
		}
	case err == nil && strings.Contains(string(out), "--- SKIP: "+t.Name()+" "):
		t.Skipf("in a process of its own:\n%s", out)
	default:
		t.Errorf("in a process of its own: %v\n%s", err, out)
	}
}
