package shared

import (
	"context"
	"os/exec"
)

// Claim makes the folder name this process as the server of a name.
func (f *Folder) Claim(name string) error { return f.claim(name) }

// Sweep removes old files of servers that do not run.
func (f *Folder) Sweep(ctx context.Context) error { return f.sweep(ctx) }

// Launch starts a process that listens in the folder.
func (f *Folder) Launch(ctx context.Context, name string, cmd *exec.Cmd) error {
	return f.launch(ctx, name, cmd)
}

// PID returns the process id of the server.
func (c *Conn) PID() int { return c.pid }
