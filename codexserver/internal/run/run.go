package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

const (
	DefaultTimeout  = 10 * time.Second // of a command whose [Spec] has none
	TimeoutExitCode = 124              // of a command that was ended by its timeout

	stragglerGrace = 200 * time.Millisecond // for the output of children that outlive the first process
	drainGrace     = time.Second            // for the end of the output, which what cannot be killed may hold open
)

// Spec is one command to run.
type Spec struct {
	// Argv is not empty. A program without a slash is looked up in the PATH of Env.
	Argv []string
	// Dir is the absolute folder to run in.
	Dir string
	// Exact makes the command fail to start if Dir leads through a symbolic link.
	Exact bool
	// Env is the whole environment, NAME=value.
	Env []string
	// Timeout ends the command; 0 is [DefaultTimeout].
	Timeout time.Duration
	// Confinement confines the command. Nil does not.
	Confinement Confinement
	// Leftovers takes what is left when the command ends by itself. Nil kills it, and so do other systems than Linux.
	Leftovers *Leftovers
}

// Confinement is a sandbox for a command.
type Confinement interface {
	// Apply changes cmd so that it starts confined: its program and arguments, or more
	// descriptors. It returns the words for the [Confine] function of the launcher, "" for none.
	Apply(cmd *exec.Cmd) (words string, err error)
}

// Confine confines the calling thread, or another one, of a launcher's process and calls start
// on it, which starts the command, in rooms unless they are nil. It gets the words and the first descriptor of a
// [Confinement].
type Confine func(words string, fd int, start func(*Rooms) error) error

// Result is the result of a command that ran.
type Result struct {
	// The two streams, and both in the order of arrival, are valid UTF-8. Beyond 1 MiB their middles are left out:
	// Omitted bytes of Aggregated.
	Stdout, Stderr, Aggregated string
	Omitted                    int64
	// ExitCode is that of the process, 128 plus the number of a signal that ended it, [TimeoutExitCode] after a
	// timeout, or -1 if it could not be ended or its launcher was killed; Stderr then has the reason.
	ExitCode int
	Duration time.Duration
	TimedOut bool
}

// StartError reports that a command could not be started. Program is its first word.
type StartError struct {
	Program string
	Err     error
}

func (e *StartError) Error() string { return fmt.Sprintf("command: start %q: %v", e.Program, e.Err) }

func (e *StartError) Unwrap() error { return e.Err }

// Run runs a command until it ends. It calls onOutput, unless that is nil, with each piece
// of output as it arrives, one call at a time, up to 1 MiB or 10,000 pieces.
//
// The error is a [*StartError], or the cause of ctx if ctx ended first. The result then
// has the output so far. Run returns no error for a command that fails or times out.
//
// When Run returns, the command's processes are gone, unless the command ended by itself and [Spec.Leftovers] took the
// rest. On Linux these are all processes that it started, on other systems those of its process group.
func (s *Starter) Run(ctx context.Context, spec Spec, onOutput func(protocol.OutputStream, []byte)) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	cmd, err := prepare(spec)
	if err != nil {
		return Result{}, &StartError{Err: err, Program: strings.Join(spec.Argv[:min(1, len(spec.Argv))], "")}
	}
	out := NewCapture(onOutput)
	cmd.Stdout, cmd.Stderr = stream{out, protocol.Stdout}, stream{out, protocol.Stderr}
	timeout := spec.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}

	proc, err := s.startSpec(ctx, cmd, spec)
	close(out.begun)
	if err != nil {
		if ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		return Result{}, &StartError{Program: spec.Argv[0], Err: err}
	}
	begin := time.Now()
	var interrupted error
	timedOut := false
	select {
	case <-proc.Exited():
		within(out.done, stragglerGrace)
	case <-time.After(timeout):
		timedOut = true
	case <-ctx.Done():
		interrupted = context.Cause(ctx)
	}
	if spec.Leftovers == nil || timedOut || interrupted != nil || !spec.Leftovers.add(proc) {
		if err = proc.End(); isClosed(proc.exited) && proc.broken != nil {
			err = proc.broken
		}
		within(out.done, drainGrace)
	}
	out.close()

	res := out.Output()
	res.ExitCode, res.Duration, res.TimedOut = proc.Code(), time.Since(begin), timedOut
	if err != nil {
		note := "(" + err.Error() + ")\n"
		res.Stderr, res.Aggregated = res.Stderr+note, res.Aggregated+note
	}
	if timedOut {
		res.ExitCode = TimeoutExitCode
	}
	return res, interrupted
}

func (s *Starter) startSpec(ctx context.Context, cmd *exec.Cmd, spec Spec) (p *Process, err error) {
	words := ""
	if spec.Confinement != nil {
		if words, err = spec.Confinement.Apply(cmd); err != nil {
			return nil, err
		}
	}
	if spec.Exact {
		folder, err := OpenFolder(spec.Dir)
		if err != nil {
			return nil, fmt.Errorf("working folder: %w", err)
		}
		defer folder.Close()
		cmd.Dir = nameOf(folder)
	}
	return s.Start(ctx, cmd, words)
}

// prepare describes the process, without its streams.
func prepare(spec Spec) (*exec.Cmd, error) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return nil, errors.New("the command is empty")
	}
	if strings.Contains(strings.Join(spec.Argv, ""), "\x00") {
		return nil, errors.New("a word of the command contains a NUL byte")
	}
	info, err := os.Stat(spec.Dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", spec.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("working folder: %w", err)
	}
	path, err := LookPath(spec.Argv[0], spec.Dir, spec.Env)
	if err != nil {
		return nil, err
	}
	env := append([]string{}, spec.Env...) // nil would inherit the server's
	return &exec.Cmd{Path: path, Args: spec.Argv, Dir: spec.Dir, Env: env}, nil
}
