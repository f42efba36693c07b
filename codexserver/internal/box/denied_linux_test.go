package box_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestDenied(t *testing.T) {
	base := fixture(t)
	dir := filepath.Join(base, "work")
	write, online := write(), write()
	online.NetworkAccess = true
	for _, tt := range []struct {
		name   string
		policy protocol.SandboxPolicy
		result run.Result
		want   bool
	}{
		{"file in a read-only workspace", readOnly, run.Result{ExitCode: 1, Stderr: "touch: cannot touch 'x': Permission denied\n"}, true},
		{"by the shell", readOnly, run.Result{ExitCode: 1, Stderr: "bash: line 1: x: Permission denied\n"}, true},
		{"file outside", write, run.Result{ExitCode: 1, Stderr: "bash: line 1: ../outside/x: Permission denied\n"}, true},
		{"file outside, read-only", write, run.Result{ExitCode: 1, Stderr: "cp: cannot create regular file '@/outside/x': Read-only file system\n"}, true},
		{"file outside, on the other stream", write, run.Result{ExitCode: 1, Stdout: "EACCES: permission denied, open '@/outside/file'\n"}, true},
		{"no file named", write, run.Result{ExitCode: 101, Stderr: "Error: Os { code: 13, kind: PermissionDenied, message: \"Permission denied\" }\nPermission denied (os error 13)\n"}, true},
		{"a script that may not be run", write, run.Result{ExitCode: 126, Stderr: "bash: line 1: ./file: Permission denied\n"}, false},
		{"a file that nobody may write", write, run.Result{ExitCode: 1, Stderr: "tee: /nowhere/at/all: Permission denied\n"}, false},
		{"a socket", write, run.Result{ExitCode: 2, Stderr: "PermissionError: [Errno 1] Operation not permitted\n"}, true},
		{"no network", write, run.Result{ExitCode: 128, Stdout: "fatal: unable to access 'https://example.com/': Could not resolve host: example.com\n"}, true},
		{"a network that fails", online, run.Result{ExitCode: 128, Stdout: "fatal: unable to access 'https://example.com/': Could not resolve host: example.com\n"}, false},
		{"a test that fails", write, run.Result{ExitCode: 1, Stderr: "assertion failed: got 'a', want 'b'\n"}, false},
		{"no such program", write, run.Result{ExitCode: 127, Stderr: "sh: nope: not found\n"}, false},
		{"success", write, run.Result{Stderr: "warning: '../outside/x': Permission denied\n"}, false},
		{"timeout", write, run.Result{ExitCode: run.TimeoutExitCode, TimedOut: true, Stderr: "'../outside/x': permission denied"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := confine(t, tt.policy, dir)
			tt.result.Stderr = strings.ReplaceAll(tt.result.Stderr, "@", base)
			tt.result.Stdout = strings.ReplaceAll(tt.result.Stdout, "@", base)
			if got := c.Denied(tt.result); got != tt.want {
				t.Errorf("%+v: %t", tt.result, got)
			}
		})
	}
}

// TestDeniedMessages judges messages of the programs on this machine.
func TestDeniedMessages(t *testing.T) {
	base := fixture(t)
	dir := filepath.Join(base, "work")
	processes := boxtest.Starter(t)
	c := confine(t, write(), dir)
	for script, want := range map[string]bool{
		"echo x > ../outside/new": true, "touch ../outside/new": true, "cp file ../outside/new": true, "echo x > new && exit 3": false,
		"cat missing": false, "./file": false,
	} {
		res, err := processes.Run(t.Context(), run.Spec{Argv: []string{"bash", "-c", script}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, Confinement: c}, nil)
		must.OK(t, err)
		if got := c.Denied(res); got != want {
			t.Errorf("%q denied: %t; %d %q", script, got, res.ExitCode, res.Aggregated)
		}
	}
}
