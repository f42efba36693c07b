//go:build unix

package run_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var path = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}

func TestRun(t *testing.T) {
	tests := []struct {
		name   string
		script string
		want   run.Result
	}{
		{"output", "echo out; echo err >&2", run.Result{Stdout: "out\n", Stderr: "err\n"}},
		{"exit code", "exit 7", run.Result{ExitCode: 7}},
		{"signal", "kill -TERM $$", run.Result{ExitCode: 143}},
		{"no input", "cat", run.Result{}},
		{"environment", "env | grep -v -e ^PWD= -e ^OLDPWD= -e ^SHLVL= -e ^_=", run.Result{Stdout: path[0] + "\n"}},
		{"bad UTF-8", `printf 'a\377\376b\342\202c'`, run.Result{Stdout: "a\uFFFD\uFFFDb\uFFFDc"}},
		{"last words of a child", "(sleep 0.02; echo late) &", run.Result{Stdout: "late\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := must.Get(boxtest.Starter(t).Run(t.Context(), run.Spec{Argv: []string{"sh", "-c", tt.script}, Dir: "/", Env: path}, nil))(t)
			must.Equal(t, "result", tt.want, got, cmpopts.IgnoreFields(run.Result{}, "Duration", "Aggregated"))
			if len(got.Aggregated) != len(got.Stdout)+len(got.Stderr) {
				t.Errorf("aggregated %q of %q and %q", got.Aggregated, got.Stdout, got.Stderr)
			}
		})
	}
}

func TestRunStreams(t *testing.T) {
	var got []string
	_, err := boxtest.Starter(t).Run(t.Context(), run.Spec{Argv: []string{"sh", "-c", "echo a; read x < /dev/null; echo b >&2"}, Dir: "/", Env: path},
		func(s protocol.OutputStream, b []byte) { got = append(got, string(s)+":"+string(b)) })
	must.OK(t, err)
	must.Equal(t, "pieces", []string{"stderr:b\n", "stdout:a\n"}, got, cmpopts.SortSlices(strings.Compare))
}

func TestRunTimeout(t *testing.T) {
	got, err := boxtest.Starter(t).Run(t.Context(), run.Spec{
		Argv: []string{"sh", "-c", "echo start; sleep 60"}, Dir: "/", Env: path, Timeout: 100 * time.Millisecond,
	}, nil)
	must.OK(t, err)
	if !got.TimedOut || got.ExitCode != run.TimeoutExitCode || got.Aggregated != "start\n" {
		t.Errorf("result %+v", got)
	}
	if want := fmt.Sprintf("command timed out after %d milliseconds\nstart\n", got.Duration.Milliseconds()); got.Formatted() != want || got.Duration < 100*time.Millisecond {
		t.Errorf("formatted %q, want %q", got.Formatted(), want)
	}
}

func TestRunInterrupted(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	got, err := boxtest.Starter(t).Run(ctx, run.Spec{Argv: []string{"sh", "-c", "echo start; sleep 60"}, Dir: "/", Env: path},
		func(protocol.OutputStream, []byte) { cancel(cause) })
	if !errors.Is(err, cause) || got.Stdout != "start\n" {
		t.Errorf("result %+v, %v", got, err)
	}
	if _, err := boxtest.Starter(t).Run(ctx, run.Spec{Argv: []string{"true"}, Dir: "/", Env: path}, nil); !errors.Is(err, cause) {
		t.Errorf("with an ended context: %v", err)
	}
}

func TestRunCannotStart(t *testing.T) {
	dir := boxtest.Folder(t)
	boxtest.Lay(t, dir, "script=#!/no/such\n")
	script := filepath.Join(dir, "script")
	tests := []struct {
		name string
		spec run.Spec
		is   error
	}{
		{"no such program", run.Spec{Argv: []string{"no-such-program"}, Dir: "/", Env: path}, fs.ErrNotExist},
		{"no such working folder", run.Spec{Argv: []string{"true"}, Dir: "/no/such", Env: path}, fs.ErrNotExist},
		{"no such interpreter", run.Spec{Argv: []string{script}, Dir: "/", Env: path}, fs.ErrNotExist},
		{"no words", run.Spec{Dir: "/"}, nil},
		{"too long", run.Spec{Argv: []string{"true", strings.Repeat("x", 1<<20)}, Dir: "/", Env: path}, syscall.E2BIG},
		{"NUL in the environment", run.Spec{Argv: []string{"true"}, Dir: "/", Env: append([]string{"A=\x00"}, path...)}, nil},
		{"NUL", run.Spec{Argv: []string{"echo", "a\x00b"}, Dir: "/", Env: path}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := boxtest.Starter(t).Run(t.Context(), tt.spec, nil)
			var start *run.StartError
			if !errors.As(err, &start) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestLookPath finds programs as a shell does: what is not a file that may be executed is passed over, and so are
// relative folders in PATH.
func TestLookPath(t *testing.T) {
	top := t.TempDir()
	boxtest.Lay(t, top, "a/folder/", "a/both/", "a/text", "a/first", "a/data", "b/first", "b/both", "b/text", "work/own")
	must.OK(t, os.Chmod(filepath.Join(top, "a/text"), 0o644), os.Chmod(filepath.Join(top, "a/data"), 0o644))
	a, b, work := filepath.Join(top, "a"), filepath.Join(top, "b"), filepath.Join(top, "work")
	env := []string{"PATH=" + b, "PATH=.:" + a + ":" + b}
	for _, tt := range []struct {
		program, want string
		err           error
	}{
		{"first", filepath.Join(a, "first"), nil},
		{"both", filepath.Join(b, "both"), nil}, // a folder in a
		{"text", filepath.Join(b, "text"), nil}, // not executable in a
		{"folder", "", syscall.EACCES}, {"data", "", syscall.EACCES},
		{"own", "", syscall.ENOENT}, // only in the current folder
		{"none", "", syscall.ENOENT}, {"./own", filepath.Join(work, "own"), nil}, {"../a/first", filepath.Join(a, "first"), nil},
		{"../a/folder", filepath.Join(a, "folder"), syscall.EACCES},
		{filepath.Join(a, "data"), filepath.Join(a, "data"), syscall.EACCES},
	} {
		got, err := run.LookPath(tt.program, work, env)
		if !errors.Is(err, tt.err) || got != tt.want {
			t.Errorf("%s: %q, %v; want %q, %v", tt.program, got, err, tt.want, tt.err)
		}
	}
}
