package proc

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Name is os.Args[0] of this program when it is started as a keeper.
const Name = "codex-mcp-keeper"

// Order is a command to start.
type Order struct {
	// Cmd is the command. Its standard streams must be files or nil, for an empty one. Its
	// folder is / by default.
	Cmd *exec.Cmd
	// Folder is the open folder to run in. If it is not nil, it replaces the one of Cmd.
	Folder *os.File
	// Confinement and Files are passed to the [Start] function of the keeper.
	Confinement []byte
	Files       []*os.File
}

// Start starts a command in a keeper's process with the confinement of the order. A nil
// confinement means that the command is not confined.
type Start func(cmd *exec.Cmd, confinement []byte, files []*os.File) error

// ErrLost is the error of a command whose keeper was killed before the command ended.
var ErrLost = errors.New("the process that keeps the command was killed")

// ErrSlow is the error of a command that did not start in time.
var ErrSlow = errors.New("the command did not start in time")

// ErrAlive is the error of a command with processes that its keeper cannot kill.
var ErrAlive = errors.New("processes of the command cannot be killed")

// remoteError is an error that a keeper reported.
type remoteError struct {
	text  string
	errno syscall.Errno
}

func (e *remoteError) Error() string { return e.text }

// Unwrap returns the system's error, if there was one.
func (e *remoteError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}
