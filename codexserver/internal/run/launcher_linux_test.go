package run_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func script(t *testing.T, text string) (*exec.Cmd, io.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	must.OK(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	return &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", text}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Stdout: w}, r
}

func startIn(t *testing.T, p *run.Starter, cmd *exec.Cmd) *run.Process {
	t.Helper()
	proc := must.Get(p.Start(t.Context(), cmd, ""))(t)
	if out, ok := cmd.Stdout.(*os.File); ok {
		out.Close()
	}
	return proc
}

// TestOneLauncherEach runs several commands, each under a launcher that has another parent's
// process id, and nothing of the environment of this process. No signal of the command ends it.
func TestOneLauncherEach(t *testing.T) {
	t.Setenv("RUN_TEST_SECRET", "secret")
	var p run.Starter
	defer p.Close()
	launchers := map[string]bool{}
	for n := range 5 {
		cmd, r := script(t, `(sleep 1000 &); for s in 1 2 3 4 5 6 7 8 11 15 16 31; do kill -$s $PPID; done; echo $PPID $(tr '\0' '\n' < /proc/$PPID/environ | grep -c TEST_SECRE[T]); exit `+strconv.Itoa(n))
		proc := startIn(t, &p, cmd)
		<-proc.Exited()
		must.OK(t, proc.End())
		must.Equal(t, "the exit code", n, proc.Code())
		out := must.Get(io.ReadAll(r))(t)
		pid, rest, _ := strings.Cut(string(out), " ")
		launchers[pid] = true
		must.Equal(t, "the secrets in the launcher's environment", "0\n", rest)
		must.Check(t, proc.End()) // again
	}
	must.Equal(t, "the launchers for five commands", 5, len(launchers))
}

// TestLauncherStoppedAtTheStart starts a command that stops its launcher before the launcher has reported the start.
func TestLauncherStoppedAtTheStart(t *testing.T) {
	var p run.Starter
	defer p.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd, _ := script(t, "kill -STOP $PPID; exec sleep 1000")
	proc := must.Get(p.Start(ctx, cmd, late))(t)
	must.Check(t, proc.End())
}

// TestSlowStart ends a command whose start is not reported in time.
func TestSlowStart(t *testing.T) {
	for _, how := range []string{never, forking} {
		t.Run(how, func(t *testing.T) {
			var p run.Starter
			cmd, r := script(t, "exec sleep 1000")
			slow := errors.New("slow")
			ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, slow)
			defer cancel()
			if _, err := p.Start(ctx, cmd, how); !errors.Is(err, slow) {
				t.Errorf("error %v", err)
			}
			cmd.Stdout.(*os.File).Close()
			must.Get(io.ReadAll(r))(t) // to the end of the command
			must.Check(t, p.Close())
		})
	}
}

// TestLauncherKilledInACancelledStart cancels the start of a command whose launcher is killed meanwhile. The error reports
// both, since the command may still run. A launcher that the order does not reach before the end is not killed.
func TestLauncherKilledInACancelledStart(t *testing.T) {
	var p run.Starter
	defer p.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	var err error
	for range 50 {
		cmd, _ := script(t, "exec sleep 1")
		if _, err = p.Start(ctx, cmd, killed); !errors.Is(err, cause) || errors.Is(err, run.ErrLost) {
			break
		}
	}
	if !errors.Is(err, cause) || !errors.Is(err, run.ErrLost) {
		t.Errorf("error %v", err)
	}
}

// startThen runs a shell that executes text once its start is reported, and returns when the
// text has written its first output. A launcher that is stopped before has no start to report.
func startThen(t *testing.T, p *run.Starter, text string) (*run.Process, io.Reader) {
	t.Helper()
	in, w, err := os.Pipe()
	must.OK(t, err)
	defer w.Close()
	cmd, r := script(t, "read started; "+text)
	cmd.Stdin = in
	proc := startIn(t, p, cmd)
	in.Close()
	must.Get(io.WriteString(w, "yes\n"))(t)
	must.Get(r.Read(make([]byte, 16)))(t)
	return proc, r
}

// stopping is a command that stops its launcher again and again.
const stopping = "echo up; while :; do kill -STOP $PPID; done"

// TestCommandThatStopsItsLauncher ends a command that stops its launcher again and again.
func TestCommandThatStopsItsLauncher(t *testing.T) {
	for name, end := range map[string]func(*run.Starter, *run.Process) error{
		"End":   func(_ *run.Starter, proc *run.Process) error { return proc.End() },
		"Close": func(p *run.Starter, _ *run.Process) error { return p.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			var p run.Starter
			defer p.Close()
			proc, _ := startThen(t, &p, stopping)
			must.Check(t, end(&p, proc))
		})
	}
}

// TestCloseEndsCommands closes a starter with running commands and left processes.
func TestCloseEndsCommands(t *testing.T) {
	var p run.Starter
	var outputs []io.Reader
	for range 5 {
		cmd, r := script(t, "(setsid sh -c 'sleep 1000 & sleep 1000' &); sleep 1000")
		startIn(t, &p, cmd)
		outputs = append(outputs, r)
	}
	must.Check(t, p.Close())
	for _, r := range outputs {
		must.Get(io.ReadAll(r))(t) // to the end of the last who could write
	}
	cmd, _ := script(t, "exit 0")
	if _, err := p.Start(t.Context(), cmd, ""); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
