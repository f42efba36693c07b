// Command codex-mcp is the Codex MCP server on standard input and output.
//
//	codex-mcp [mcp-server] [flags]
//	codex-mcp http [flags]
//	codex-mcp ask [flags] task
//	codex-mcp shared [stop]
//	codex-mcp page
//	codex-mcp rules
//	codex-mcp doctor [flags]
//	codex-mcp completion bash|zsh|fish|powershell
//
// It speaks MCP to the program that started it, logs to standard error, and ends when its
// input ends or on SIGINT, SIGTERM or SIGHUP. The configuration is
// $CODEX_HOME/config.toml (~/.codex by default), codex-mcp.toml next to it, and -c, which
// overrides keys of both. The flags of codex mcp-server have the same meaning. --help
// lists all flags; docs/configuration.md has the keys.
//
// The installed Codex runs the turns if it is new enough and signed in. Otherwise the
// native engine runs them with a provider of config.toml. --engine chooses one of the two,
// --codex names the program.
//
// Questions go to the client. With --approvals both they are also on a page in the
// browser, with --approvals page only there. codex-mcp page prints a link to it at any time.
//
// codex-mcp http serves the clients of one user over Streamable HTTP; see docs/http.md.
// Command codex-mcp-gateway serves several users. It starts this program as the worker of
// each of them.
//
// codex-mcp ask runs a task from a terminal; see docs/tasks.md. codex-mcp rules lists the rules that were
// accepted with the answer to a question. codex-mcp doctor checks all of this and reports what is wrong.
//
// Exit status: 0 at the end of the input or after a signal; 1 when a configuration file cannot be read, or doctor finds
// that something does not hold; 2 when the command line is wrong, -c included.
// For ask: 0 done; 1 refused, incomplete or failed; 2 wrong command line; 3 nothing could begin; 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	processes "github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/program"
	"github.com/codexmcp/codexmcp/internal/stack"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func main() {
	box.Main()                   // first: this process may be a launcher, or a command that it confines
	stack.Grow()                 // at once: half a MiB of the program would stay in memory
	program.SurviveBrokenPipes() // until the end
	// Commands must not get this process's inherited files, its environment or its memory.
	if err := errors.Join(processes.SealDescriptors(), box.HideProcess()); err != nil {
		fmt.Fprintln(os.Stderr, "codex-mcp:", err)
		os.Exit(1)
	}
	if os.Args[0] == worker.Name {
		os.Exit(exit(os.Stderr, work(context.Background(), os.Stderr)))
	}
	if os.Args[0] == orphanName {
		os.Exit(orphan(os.Args[1:]))
	}
	if os.Args[0] == sharedName && len(os.Args) > 1 {
		os.Exit(exit(os.Stderr, runShared(context.Background(), os.Args[1], os.Args[2:], os.Stderr)))
	}
	os.Exit(run(context.Background(), programName(os.Args[0]), os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the program on other streams and returns the exit status.
func run(ctx context.Context, name string, args []string, stdout, stderr io.Writer) int {
	o, err := parse(name, args, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return statusWrong
	}
	return exit(stderr, o.run(ctx, stdout, stderr))
}

// Run serves the client on the standard streams, itself or by a server that clients share.
func (o *options) Run(ctx context.Context, _, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	c, err := configure(o, os.Getenv, o.logger(stderr))
	if err != nil {
		return err
	}
	if c.settings.Shared {
		conn, reason := share(ctx, o, c)
		if reason == nil {
			return conn.Relay(ctx, os.Stdin, os.Stdout)
		}
		c.log.Warn("this process serves its client itself: it cannot share a server", "reason", reason)
	}
	c.warn(o, stderr)
	return c.withServer(ctx, o, func(s *codexserver.Server, _ *choice) error { return c.serveHost(ctx, s) })
}

// serveHost serves the client on the standard streams until its input ends, or the process that has started this one.
func (c *configuration) serveHost(ctx context.Context, s *codexserver.Server) error {
	ctx, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer end()
	if runtime.GOOS != "windows" { // where no process gets another parent
		watch := parentage{os.Getppid, adopts, s.Idle, c.log}
		watching.Go(func() {
			if watch.over(ctx) {
				c.log.Info("the process that started this server has ended; another one holds the input open")
				end()
			}
		})
	}
	return s.Serve(ctx, jsonrpc.Stdio())
}

// endingSignals returns the signals that end the program in an orderly way.
func endingSignals() []os.Signal { return program.EndingSignals(syscall.SIGHUP) }

// lastServer is the last version of Codex with mcp-server, which this program replaces.
const lastServer = "0.153.4"

// versionLine returns the version in one line, with what a bug report needs. With the name codex the
// line begins with lastServer, since clients choose the server's command by the version of codex.
func versionLine(name string) string {
	if name == "codex" {
		return fmt.Sprintf("codex-cli %s (codex-mcp %s, %s)", lastServer, program.Version(), program.Build())
	}
	return fmt.Sprintf("codex-mcp %s (%s)", program.Version(), program.Build())
}

func (o *options) logger(stderr io.Writer) *slog.Logger {
	return program.Logger(stderr, o.logFormat, o.log)
}

// status is an exit status whose reason was printed.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// statusWrong is the exit status for a wrong command line.
const statusWrong = 2

// wrongLine reports whether an error is that of a -c of the command line.
func wrongLine(err error) bool {
	_, is := errors.AsType[*config.FlagError](err)
	return is
}

// exit prints an error, and returns the exit status.
func exit(stderr io.Writer, err error) int {
	if s, printed := errors.AsType[status](err); printed || err == nil {
		return int(s)
	}
	fmt.Fprintln(stderr, "codex-mcp:", err)
	if wrongLine(err) {
		return statusWrong
	}
	return 1
}

// withServer chooses an engine, calls f with a server, and then closes the engine, and the server's files and page.
func (c *configuration) withServer(
	ctx context.Context, o *options, f func(*codexserver.Server, *choice) error,
) (err error) {
	e, err := choose(ctx, o, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	c.log.Info("engine", "name", e.name, "reason", e.reason)
	closeLogs, err := c.openLogs(o, e.name)
	defer closeLogs()
	if err != nil {
		return err
	}
	so := c.serverOptions(o)
	so.EngineName, so.EngineReason = e.name, e.reason
	if n := c.newNotifier(e); n != nil {
		so.Observer = n
		defer n.Close()
	}
	closePage, err := c.openPage(so, os.Stderr, o.announcing)
	if err != nil {
		return err
	}
	return errors.Join(f(codexserver.New(e.Engine, so), e), closePage())
}

// serverOptions returns the options of a server without what is opened for it.
func (c *configuration) serverOptions(o *options) *codexserver.Options {
	calls := c.settings.Calls
	calls.Folders, calls.Turns = o.folders, o.turns
	home := c.home
	if c.demo { // no rule is offered, which would go with the demo's folder
		home = ""
	}
	return &codexserver.Options{
		Approvals: c.settings.Approvals.Options,
		Asking:    c.settings.Approvals.Asking,
		Rules:     c.settings.Approvals.Rules(),
		Home:      home,
		Store:     c.store,
		Calls:     calls,
		Changes:   c.settings.Changes,
		Tasks:     c.settings.Tasks,
		Version:   program.Version(),
		Logger:    c.log,
		Folder:    o.folder,
		Observer:  c.observer,
		Record:    c.record,
		Trace:     c.trace,
	}
}
