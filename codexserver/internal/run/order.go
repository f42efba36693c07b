package run

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Order is a process to start.
type Order struct {
	// Cmd is the process. Its standard streams must be files or nil, for an empty one. Its
	// folder is / by default.
	Cmd *exec.Cmd
	// Folder is the open folder to run in. If it is not nil, it replaces the one of Cmd.
	Folder *os.File
	// Confinement and Files are passed to the [Confine] function of the launcher. Without a
	// confinement the command is not confined.
	Confinement string
	Files       []*os.File
}

// Confine confines the calling thread, or another one, of a launcher's process and calls start
// on it, which starts the command.
type Confine func(confinement string, files []*os.File, start func() error) error

// ErrLost is the error of a command whose launcher was killed before the command ended.
var ErrLost = errors.New("the process that keeps the command was killed, and with it what could be found of the command")

// ErrSlow is the error of a command that did not start in time.
var ErrSlow = errors.New("the command did not start in time")

// ErrAlive is the error of a command with processes that cannot be killed.
var ErrAlive = errors.New("processes of the command cannot be killed")

// codeOf returns the exit code as shells report it.
func codeOf(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// Code returns the exit code of the first process: its own, or 128 plus the number of the
// signal that ended it. It is -1 if the process has not ended or its launcher was killed.
func (p *Process) Code() int {
	if !isClosed(p.exited) {
		return -1
	}
	status, err := p.Status()
	if err != nil {
		return -1
	}
	return codeOf(status)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// within reports whether c is closed within a time.
func within(c <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
