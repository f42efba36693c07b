package appserver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// openInstalled starts the app-server of the installed Codex.
func (e *Engine) openInstalled(ctx context.Context) (*child, error) {
	paths, err := find(e.programs, e.options.Path)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		c, err := e.openProgram(ctx, path)
		if !errors.Is(err, errOwn) {
			return c, err
		}
	}
	return nil, &NotFoundError{Path: paths[0], Err: fmt.Errorf("%s %w", paths[0], errOwn)}
}

// openProgram starts the program at path as an app-server. The error is errOwn if the
// program is codex-mcp and not Codex.
func (e *Engine) openProgram(ctx context.Context, path string) (*child, error) {
	c, err := e.spawn(ctx, path, e.args, e.defaults.policy)
	if ctx.Err() == nil && e.defaults.policy == "" && errors.Is(err, errUntrusted) {
		// Today's Codex does not start with this word in config.toml, but takes it with
		// each thread.
		args := append(slices.Clone(e.args), "-c", `approval_policy='on-request'`)
		if c, again := e.spawn(ctx, path, args, protocol.ApprovalUntrusted); again == nil {
			c.log.Info(`codex: approval_policy = "untrusted" of config.toml is sent with each conversation`)
			return c, nil
		}
	}
	if _, old := errors.AsType[*TooOldError](err); old || err == nil {
		return c, err
	}
	// The program may be an old version without an app-server, or not Codex.
	v, unread := e.programVersion(ctx, path)
	switch {
	case unread == nil:
		if old := v.Check(); old != nil {
			err = old
		}
	case errors.Is(unread, errOwn):
		err = unread
	}
	return nil, err
}

// spawn starts an app-server whose conversations have a policy by default.
func (e *Engine) spawn(
	ctx context.Context, path string, args []string, policy protocol.ApprovalPolicy,
) (*child, error) {
	stderr := &tail{log: e.options.Logger}
	conn, environ, err := e.talk(ctx, run.Talk{Stderr: stderr, Leave: leaveGrace}, path, args...)
	if err != nil {
		return nil, fmt.Errorf("codex app-server cannot be started: %w", err)
	}
	c, err := connect(ctx, jsonrpc.Lines(conn.Out, conn.In, conn), stderr, &e.options)
	if err != nil {
		return nil, err
	}
	c.path, c.pid, c.policy, c.environ = path, conn.PID, policy, environ
	c.log.Debug("codex: app-server started", "pid", c.pid, "path", path, "version", c.version.String())
	return c, nil
}

// talk starts a program unless a command can write it. Codex searches git in the PATH, and npm's batch file node, so it gets
// no folder there that commands can write. It returns the environment of the program.
func (e *Engine) talk(
	ctx context.Context, t run.Talk, path string, args ...string,
) (conn *run.Conn, environ []string, err error) {
	cmd := exec.Command(path, args...)
	var whole string
	cmd.Env, whole = e.programs.Environ(e.environment())
	if got := run.Value(cmd.Env, "PATH"); got != whole {
		e.options.Logger.Info("codex: its PATH has no folder that commands can write, and none without a full path",
			"path", got)
	}
	if runtime.GOOS == "windows" { // where a batch file looks for programs in the folder that it runs in
		cmd.Dir = filepath.Dir(path)
	}
	err = e.programs.Start(cmd, func() (err error) {
		conn, err = e.processes.Connect(ctx, cmd, t)
		return err
	})
	return conn, cmd.Env, err
}

// programVersion runs the program with --version, which prints "codex-cli 0.169.0".
func (e *Engine) programVersion(ctx context.Context, path string) (version, error) {
	ctx, stop := context.WithTimeout(ctx, versionLimit)
	defer stop()
	conn, _, err := e.talk(ctx, run.Talk{Leave: versionLimit}, path, "--version")
	var out []byte
	if err == nil {
		defer context.AfterFunc(ctx, func() { _ = conn.End() })()
		out, err = io.ReadAll(io.LimitReader(conn.Out, 1<<20))
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		return version{}, fmt.Errorf("%s --version: %w", path, err)
	}
	if bytes.Contains(out, []byte(ownName)) {
		return version{}, errOwn
	}
	out = bytes.TrimSpace(out)
	return appclient.ParseVersion(string(out[bytes.LastIndexByte(out, ' ')+1:]))
}

// ownName is a part of what codex-mcp --version prints, even under another file name.
const ownName = "codex-mcp"

// errOwn means that the program codex is a link to codex-mcp, a copy of it or a script
// around it. Users make those for clients that always start codex.
var errOwn = errors.New("is codex-mcp itself, and not Codex")

// Find returns the path of the codex program. It takes path, or $CODEX_BIN if that is
// empty, else the name codex. It searches for a name without a folder in the PATH, but not
// in folders for temporary files. The error is a [*NotFoundError].
func Find(path string) (string, error) { return first(find(&box.Programs{}, path)) }

// first returns the first of the programs found.
func first(paths []string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return paths[0], nil
}

// find returns all candidates of Find, in the order of the PATH, that no command can write.
func find(programs *box.Programs, path string) ([]string, error) {
	path = cmp.Or(path, os.Getenv("CODEX_BIN"), "codex")
	dir, err := os.Getwd()
	var all []string
	if err == nil || filepath.IsAbs(path) {
		programs.Given(dir) // where a repository may have brought a Codex along
		all, err = programs.FindAll(path, dir, os.Getenv("PATH"))
	}
	if err != nil {
		return nil, &NotFoundError{Path: path, Err: err}
	}
	return all, nil
}

type version = appclient.Version

// continuesTurns is the first version measured whose rollouts have the id that a client gave to
// its message, and which lets no other process write to the conversation meanwhile. It is also the first one
// whose snapshot of the shell leaves out the variables that commands must not get.
var continuesTurns = version{0, 169, 0}
