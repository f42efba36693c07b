package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/keeper"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// DefaultTimeout bounds a command whose [Spec] names no timeout.
const DefaultTimeout = 10 * time.Second

// TimeoutExitCode is the exit code of a command that was ended by its timeout.
const TimeoutExitCode = 124

const (
	// Children that outlive the command's first process and hold its output get
	// this long to finish before they are killed.
	stragglerGrace = 200 * time.Millisecond
	// What cannot be killed, such as a process of another user, is waited for
	// no longer than this.
	killGrace = 2 * time.Second
	// When everything was killed the pipes are at their end, unless a process
	// that could not be killed holds them.
	drainGrace = time.Second
)

// Spec is one command to run.
type Spec struct {
	// Argv is the program and its arguments, not empty. A program without a
	// slash is looked up in the PATH of Env.
	Argv []string
	// Dir is the absolute folder to run in.
	Dir string
	// Exact runs the command in the folder that has the path Dir without symbolic
	// links, or not at all.
	Exact bool
	// Env is the whole environment, NAME=value.
	Env []string
	// Timeout ends the command; 0 is [DefaultTimeout].
	Timeout time.Duration
	// Starter starts the process; nil starts it as it is.
	Starter Starter
	// Keepers keep the command's processes; nil leaves them to this process,
	// which loses sight of daemons that closed what they inherited.
	Keepers *keeper.Pool
	// Leftovers takes what the command leaves running when it ends by itself; it
	// needs Keepers. Nil kills what is left.
	Leftovers *Leftovers
}

// Starter starts a prepared command. A sandbox is one.
type Starter interface {
	// Start starts cmd. It may change the program and its arguments, but not
	// the streams.
	Start(cmd *exec.Cmd) error
}

// Orderer is a [Starter] that can have a keeper start the command.
type Orderer interface {
	// Order is Start, but for the starting.
	Order(cmd *exec.Cmd) (keeper.Order, error)
}

// Result is what became of a command that ran.
type Result struct {
	// Stdout and Stderr are the two streams, valid UTF-8, the middle left out
	// of what is longer than 1 MiB.
	Stdout, Stderr string
	// Aggregated is both streams in the order of arrival, bounded likewise.
	Aggregated string
	// Omitted is how many bytes Aggregated leaves out.
	Omitted int64
	// ExitCode is the process's own; 128 plus the signal's number when one
	// ended it, [TimeoutExitCode] after a timeout, -1 when it could not be ended
	// or its keeper was killed, which Stderr says then.
	ExitCode int
	// Duration is the time from start to end.
	Duration time.Duration
	// TimedOut is true when the timeout ended it.
	TimedOut bool
}

// StartError says that a command could not be started.
type StartError struct {
	// Program is the first word of the command.
	Program string
	// Err is the reason.
	Err error
}

// Error implements error.
func (e *StartError) Error() string {
	return fmt.Sprintf("command: start %q: %v", e.Program, e.Err)
}

// Unwrap returns the reason.
func (e *StartError) Unwrap() error { return e.Err }

// Run runs a command to its end. It calls onOutput, unless that is nil, with each piece
// of output as it arrives, one call at a time, up to a limit (1 MiB or 10,000 pieces).
//
// The error is a [*StartError], or the context's cause when that ended first; the result
// then holds what had been written. A command that fails, or runs into its timeout, is
// not an error.
//
// When Run returns, the command's processes are gone, unless the command ended by itself
// and [Spec.Leftovers] took what was left. With [Spec.Keepers] these are all processes
// that it started. Without, on Linux, they are its session, its descendants, and daemons
// that it left behind, unless they closed what they inherited; on other systems its
// process group.
func Run(ctx context.Context, spec Spec, onOutput func(protocol.OutputStream, []byte)) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	cmd, err := prepare(spec)
	if err != nil {
		return Result{}, err
	}
	out := newCapture(onOutput)
	pipes, err := openPipes(cmd, out)
	if err != nil {
		return Result{}, &StartError{Program: spec.Argv[0], Err: err}
	}
	timeout := spec.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}

	proc, err := start(ctx, cmd, pipes, spec)
	pipes.closeChildEnds()
	if err != nil {
		pipes.abandon()
		if ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		return Result{}, &StartError{Program: spec.Argv[0], Err: err}
	}
	begin := time.Now()
	pipes.read()

	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var interrupted error
	timedOut := false
	select {
	case <-proc.exited():
		pipes.wait(stragglerGrace)
	case <-timer.C:
		timedOut = true
	case <-ctx.Done():
		interrupted = context.Cause(ctx)
	}
	var code int
	if spec.Leftovers != nil && !timedOut && interrupted == nil {
		code, err = proc.leave(spec.Leftovers)
	} else {
		code, err = proc.end()
		if !pipes.wait(drainGrace) {
			pipes.abandon()
		}
	}

	res := Result{
		Stdout:     out.stdout.String(),
		Stderr:     out.stderr.String(),
		Aggregated: out.both.String(),
		Omitted:    int64(out.both.dropped),
		ExitCode:   code,
		Duration:   time.Since(begin),
		TimedOut:   timedOut,
	}
	if err != nil {
		note := "(" + err.Error() + ")\n"
		res.Stderr, res.Aggregated = res.Stderr+note, res.Aggregated+note
	}
	if timedOut {
		res.ExitCode = TimeoutExitCode
	}
	return res, interrupted
}

// prepare makes the process's description, but for its streams.
func prepare(spec Spec) (*exec.Cmd, error) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return nil, &StartError{Err: errors.New("no program")}
	}
	for _, word := range spec.Argv {
		if strings.ContainsRune(word, 0) {
			return nil, &StartError{Program: spec.Argv[0], Err: errors.New("a word holds a NUL byte")}
		}
	}
	if info, err := os.Stat(spec.Dir); err != nil {
		return nil, &StartError{Program: spec.Argv[0], Err: fmt.Errorf("working folder: %w", err)}
	} else if !info.IsDir() {
		return nil, &StartError{Program: spec.Argv[0], Err: fmt.Errorf("working folder: %s is not a folder", spec.Dir)}
	}
	path, err := LookPath(spec.Argv[0], spec.Dir, spec.Env)
	if err != nil {
		return nil, &StartError{Program: spec.Argv[0], Err: err}
	}
	env := spec.Env
	if env == nil {
		env = []string{} // nil would inherit the server's
	}
	return &exec.Cmd{Path: path, Args: spec.Argv, Dir: spec.Dir, Env: env, SysProcAttr: sessionAttr()}, nil
}
