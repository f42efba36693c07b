// Package boxtest is what tests of commands and their sandbox have in common: what the system must
// have, a folder outside of /tmp, and a process of its own.
package boxtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// Need skips the test if this system has no sandbox. The tests' program must begin with [box.Main].
func Need(t testing.TB) {
	t.Helper()
	_, err := box.New(box.Options{}).Confine(protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, "/", nil)
	switch {
	case errors.Is(err, box.ErrUnavailable):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
}

// NeedRooms skips the test if this system gives commands no namespaces.
func NeedRooms(t testing.TB) {
	t.Helper()
	if err := box.RoomsAvailable(); err != nil {
		t.Skip(err)
	}
}

// IsRoot reports whether this process is root and may act as another user. Root of a user namespace of one user may not.
func IsRoot() bool {
	users, err := os.ReadFile("/proc/self/uid_map") // only Linux has it
	return os.Getuid() == 0 && (err != nil || !strings.HasSuffix(strings.TrimSpace(string(users)), " 1"))
}

// Folder returns a new folder for the test, by a path without symbolic links.
func Folder(t testing.TB) string {
	t.Helper()
	return must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
}

// FolderOutsideTmp is Folder, of which no part is below /tmp, which commands can write.
func FolderOutsideTmp(t testing.TB) string {
	t.Helper()
	dir := Folder(t)
	if paths.Below(dir, paths.Real("/tmp")) { // $TMPDIR says so
		dir = must.Get(os.MkdirTemp("/var/tmp", "test"))(t)
		t.Cleanup(func() { os.RemoveAll(dir) })
	}
	return paths.Real(dir)
}

// Lay makes what entries name below a folder: "name/" is a folder, "name -> target" a symbolic link, in
// whose target @ is the folder, and "name" or "name=text" a file that may be executed.
func Lay(t testing.TB, top string, entries ...string) {
	t.Helper()
	for _, entry := range entries {
		name, text, _ := strings.Cut(entry, "=")
		name, target, isLink := strings.Cut(name, " -> ")
		path := filepath.Join(top, name)
		err := os.MkdirAll(filepath.Dir(path), 0o777)
		switch {
		case strings.HasSuffix(name, "/"):
			err = errors.Join(err, os.MkdirAll(path, 0o777))
		case isLink:
			testenv.NeedsLinks(t)
			err = errors.Join(err, os.Symlink(strings.ReplaceAll(target, "@", top), path))
		default:
			err = errors.Join(err, testenv.WriteProgram(path, []byte(text)))
		}
		must.OK(t, err)
	}
}

// Starter returns a starter of processes for the test.
func Starter(t testing.TB) *run.Starter {
	t.Helper()
	s := &run.Starter{}
	t.Cleanup(func() { must.Check(t, s.Close()) })
	return s
}

// Outside returns a temporary folder outside of /tmp and /var/tmp: most policies let commands write
// there, and each user of the gateway has a /tmp of its own. It skips the test if this user can make none.
func Outside(t testing.TB) string {
	t.Helper()
	cache, _ := os.UserCacheDir() // "" without HOME
	if cache != "" {
		_ = os.MkdirAll(cache, 0o700) // MkdirTemp reports the error
	}
	parents := []string{cache, "/var/cache", "."}
	if !testenv.Plain(cache) { // the folder's path stands in scripts
		parents = []string{"/var/cache", ".", cache}
	}
	for _, parent := range parents {
		parent, err := filepath.Abs(parent)
		if err == nil {
			parent, err = filepath.EvalSymlinks(parent)
		}
		if err != nil || strings.HasPrefix(parent+"/", "/tmp/") || strings.HasPrefix(parent+"/", "/var/tmp/") {
			continue
		}
		if dir, err := os.MkdirTemp(parent, "codex-mcp-test"); err == nil {
			t.Cleanup(func() { os.RemoveAll(dir) })
			return dir
		}
	}
	t.Skip("this user can write only below /tmp and /var/tmp")
	return ""
}

// subprocess names, in a process that RunInSubprocess started, the test that it runs.
const subprocess = "BOX_TEST_SUBPROCESS"

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
	cmd := exec.CommandContext(t.Context(), program, "-test.run="+pattern, "-test.v",
		fmt.Sprint("-test.short=", testing.Short()))
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
