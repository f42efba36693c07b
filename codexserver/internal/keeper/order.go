package keeper

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Name is the first word of our own program when it is started as a keeper.
const Name = "codex-mcp-keeper"

// Order is a command to start.
type Order struct {
	// Cmd is the command. Its input, output and errors are files; those that are
	// nil are empty. Its folder is / by default.
	Cmd *exec.Cmd
	// Folder, unless nil, is the open folder to run in, whatever Cmd names.
	Folder *os.File
	// Confinement is handed to the keeper's [Start] with Files.
	Confinement []byte
	Files       []*os.File
}

// Start starts a command in a keeper's process, confined as the order says. A
// nil confinement confines nothing.
type Start func(cmd *exec.Cmd, confinement []byte, files []*os.File) error

// ErrLost is the error of a command whose keeper was killed before it ended.
var ErrLost = errors.New("the process that keeps the command was killed")

// ErrSlow is the error of a command that has not started in time.
var ErrSlow = errors.New("the command does not start")

// ErrAlive is the error of a command of which processes are left that its
// keeper cannot kill.
var ErrAlive = errors.New("processes of the command cannot be killed")

// remoteError is an error of a keeper's.
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
