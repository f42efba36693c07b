package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/spf13/pflag"
)

// checkAttach fails for flags that cannot be used with --attach.
func (a *askOptions) checkAttach(fs *pflag.FlagSet) error {
	connect := fs.Lookup("connect")
	switch {
	case a.attach == "" && fs.Changed("attach"):
		return errors.New("--attach: want the id of a conversation")
	case a.attach == "":
		return errors.New("--connect: with ask it needs --attach")
	case fs.Changed("connect") && connect.Value.String() == "":
		return errors.New("--connect: want the URL of the server that runs the conversation")
	case len(a.task) > 0 && (len(a.task) != 1 || a.task[0] != ""):
		return errors.New("--attach follows a conversation and takes no task; codex-mcp ask --resume continues one")
	}
	for _, name := range append([]string{"resume"}, startFlags...) {
		if fs.Changed(name) {
			return fmt.Errorf("--%s is for a new turn, and --attach follows a running one; leave out one of the two", name)
		}
	}
	return nil
}

// attachment returns the task to follow a conversation, or nil.
func (a *askOptions) attachment(o *options) *terminal.Task {
	if a.attach == "" {
		return nil
	}
	return &terminal.Task{Attach: a.attach, JSON: o.json, Program: o.name + " ask", Version: version()}
}

// attachOn follows a conversation of the server of --connect, or else of a shared one.
func attachOn(ctx context.Context, o *options, task *terminal.Task, console *terminal.Console, signals <-chan os.Signal) int {
	if o.connect == "" {
		conn, err := o.findShared(ctx)
		if err != nil {
			return fail(console.Err, fmt.Errorf("--attach: %w", err))
		}
		return terminal.Run(ctx, jsonrpc.Lines(struct{ io.Reader }{conn}, conn, conn), console, task, signals)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	here, there := jsonrpc.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := o.connectTo(ctx, there)
		there.Close() // it may have failed before it used the connection
		ended <- err
	}()
	code := terminal.Run(ctx, here, console, task, signals)
	var err error
	select {
	case err = <-ended:
	case <-time.After(endTime):
		cancel()
		err = <-ended
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(console.Err, "codex-mcp: --connect:", terminal.Prose(err.Error()))
		code = max(code, terminal.StatusFailed)
	}
	return code
}
