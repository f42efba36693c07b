package appserver_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestKilledLauncher kills the launcher of an app-server, which then gets another parent. The
// app-server counts as dead.
func TestKilledLauncher(t *testing.T) {
	e := program(t, "deaf", appserver.Options{})
	h := &recorder{}
	conv := start(t, e, h)
	done := begin(t.Context(), conv, text("go"))
	h.wait(t, "task_started")
	stat := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/stat", e.PID())))(t)
	_, fields, _ := bytes.Cut(stat, []byte(") ")) // behind the name
	var state string
	var launcher int
	must.Get(fmt.Sscan(string(fields), &state, &launcher))(t)
	if launcher == os.Getpid() {
		t.Fatal("the app-server has no launcher")
	}
	must.OK(t, syscall.Kill(launcher, syscall.SIGKILL))
	var failed *engine.TurnError
	if err := <-done; !errors.As(err, &failed) || !slices.Equal(h.types()[1:], []string{"task_started", "error", "task_complete"}) {
		t.Errorf("the turn ended with %v: %v", err, h.types())
	}
	if left := left(t); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// TestNewWithoutMain makes no engine in a program whose main does not call Main.
func TestNewWithoutMain(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, asCodex+"=without Main") }, func(t *testing.T) {
		if _, err := appserver.New(nil); err == nil || !strings.Contains(err.Error(), "appserver.Main") {
			t.Errorf("error %v", err)
		}
	})
}

// left returns the processes that the test's app-server left behind.
func left(t *testing.T) (found []string) {
	t.Helper()
	files := must.Get(filepath.Glob("/proc/[0-9]*/environ"))(t)
	for _, file := range files {
		env, _ := os.ReadFile(file) // nothing of a process that has ended
		if bytes.Contains(env, []byte(ofTest+"="+os.Getenv(ofTest)+"\x00")) {
			found = append(found, filepath.Dir(file))
		}
	}
	return found
}
