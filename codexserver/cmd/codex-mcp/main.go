// Command codex-mcp is the Codex MCP server on standard input and output.
//
//	codex-mcp [-c key=value]... [-engine auto|codex|native] [-codex path|ws://address]
//	          [-approvals client|page] [-log level] [-trace file]
//
// It speaks MCP to the program that started it, logs to standard error, and
// ends when its input ends or on SIGINT or SIGTERM. The configuration is
// $CODEX_HOME/config.toml (~/.codex by default), codex-mcp.toml beside it, and
// -c, which overrides keys of both.
//
// The turns are run by the installed Codex when there is one that is new enough
// and signed in, else by the native engine on a provider of config.toml; -engine
// chooses one of the two, -codex names the program.
//
// Questions go to the client. With -approvals page they stand on a page in the
// browser as well, whose link is told on standard error, and to the client when
// it cannot be asked itself.
//
// codex-mcp ask "task" is the same server from a terminal: it shows what happens
// and asks before a command runs; see docs/ask.md.
//
// codex-mcp doctor looks at all of this and says what is wrong, with exit
// status 1 when no turn can run; -json prints it for programs.
//
// So that an old configuration changes by one word, these are the same:
//
//	codex-mcp mcp-server     codex-mcp mcp     codex-mcp mcp serve
//
// Exit status: 0 at the end of the input or after a signal; 1 when a
// configuration file or -c cannot be read; 2 when the arguments are wrong. That
// of ask: 0 answered, 1 failed, 2 wrong arguments, 130 interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/command"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func main() {
	sandbox.Main() // before anything else: this may be a command that is to be confined, or a keeper of commands
	// What this process inherited is not for commands, nor are its environment
	// and its memory.
	if err := errors.Join(command.SealDescriptors(), sandbox.HideProcess()); err != nil {
		fmt.Fprintln(os.Stderr, "codex-mcp:", err)
		os.Exit(1)
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program without the process around it; it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // the flag package has said what is wrong
	case o.version:
		info, _ := debug.ReadBuildInfo()
		fmt.Fprintln(stdout, about(info))
		return 0
	case o.ask.wanted:
		return ask(ctx, o, stdout, stderr)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: o.log}))
	c, err := configure(o, os.Getenv, log)
	if o.doctor {
		return doctor(ctx, o, stdout, c, err)
	}
	if err == nil {
		err = serve(ctx, o, c)
	}
	if err != nil {
		fmt.Fprintln(stderr, "codex-mcp:", err)
		return 1
	}
	return 0
}

func serve(ctx context.Context, o *options, c *configuration) error {
	e, err := choose(ctx, o, c)
	if err != nil {
		return err
	}
	c.log.Info("engine", "name", e.name, "reason", e.reason)
	return errors.Join(c.serve(ctx, o, e, jsonrpc.Stdio()), e.Close())
}

// serve serves one client, on t.
func (c *configuration) serve(ctx context.Context, o *options, e *chosen, t jsonrpc.Transport) error {
	record, err := appendTo(c.settings.ApprovalLog)
	if err != nil {
		return err
	}
	defer record.Close()
	traced, err := appendTo(o.trace)
	if err != nil {
		return err
	}
	defer traced.Close()
	so := &codexserver.Options{
		Approvals:    c.settings.Approvals,
		Rules:        codexserver.Rules{Allow: c.settings.Allow, Deny: c.settings.Deny},
		Record:       record.writer(),
		Trace:        traced.writer(),
		SessionTools: c.settings.SessionTools,
		EngineName:   e.name,
		EngineReason: e.reason,
		Version:      version(),
		Logger:       c.log,

		LockedArguments: c.settings.LockedArguments,
	}
	page, err := c.openPage(so, os.Stderr, !o.ask.wanted) // who asks at a terminal shows the question there
	if err != nil {
		return err
	}
	return errors.Join(codexserver.New(e.Engine, so).Serve(ctx, t), page.Close())
}

// sink is a file that is appended to, or nothing.
type sink struct{ *os.File }

func appendTo(path string) (sink, error) {
	if path == "" {
		return sink{}, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return sink{f}, err
}

func (s sink) writer() io.Writer {
	if s.File == nil {
		return nil
	}
	return s.File
}

func (s sink) Close() error {
	if s.File == nil {
		return nil
	}
	return s.File.Close()
}

// options are the command line's.
type options struct {
	overrides []string
	engine    string
	codex     string
	log       slog.Level
	trace     string
	version   bool
	doctor    bool
	json      bool // of the doctor and of ask
	ask       askOptions
}

// aliases are the words under which the server was started before.
var aliases = [][]string{nil, {"mcp-server"}, {"mcp"}, {"mcp", "serve"}}

// parse reads flags before, between and after the words.
func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("codex-mcp", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintln(stderr, "usage: codex-mcp [flags] [mcp-server | mcp | mcp serve | doctor | ask task]")
		fs.PrintDefaults()
	}
	override := func(s string) error { o.overrides = append(o.overrides, s); return nil }
	fs.Func("c", "override a configuration `key=value`; repeatable, keys may be dotted, values are TOML or plain text", override)
	fs.Func("config", "the same as -c", override)
	o.engine = "auto"
	fs.Func("engine", "what runs the turns: auto, codex or native", func(s string) error { o.engine = s; return engineWord(s) })
	fs.StringVar(&o.codex, "codex", "", "the codex program, or the ws:// address of an app-server; default $CODEX_BIN, else the PATH's")
	fs.TextVar(&o.log, "log", level(), "log to standard error from this `level` on: debug, info, warn or error")
	fs.Func("approvals", "where questions are answered: client, or `page` for a page in the browser beside it", func(s string) error {
		key, ok := approvalPlaces[s]
		if !ok {
			return errors.New("want client or page")
		}
		return override(key)
	})
	fs.StringVar(&o.trace, "trace", "", "append every message to this `file`, secrets replaced")
	fs.BoolVar(&o.json, "json", false, "doctor, ask: print JSON")
	o.ask.flags(fs)
	fs.BoolVar(&o.version, "version", false, "print the version and exit")
	var words []string
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		rest := fs.Args()
		if n := len(args) - len(rest); n > 0 && args[n-1] == "--" {
			words = append(words, rest...)
			break
		}
		if args = rest; len(args) == 0 {
			break
		}
		words, args = append(words, args[0]), args[1:]
	}
	if err := o.ask.check(fs, words); err != nil {
		fmt.Fprintln(stderr, err)
		return nil, err
	}
	if o.ask.wanted {
		return o, nil
	}
	if slices.Equal(words, []string{"doctor"}) {
		o.doctor = true
		return o, nil
	}
	if !slices.ContainsFunc(aliases, func(a []string) bool { return slices.Equal(a, words) }) {
		fmt.Fprintf(stderr, "unknown command %q\n", strings.Join(words, " "))
		fs.Usage()
		return nil, errors.New("unknown command")
	}
	return o, nil
}

// level reads RUST_LOG, as the old server did, where it is one plain word.
func level() slog.Level {
	l := slog.LevelWarn
	if err := l.UnmarshalText([]byte(os.Getenv("RUST_LOG"))); err != nil {
		return slog.LevelWarn
	}
	return l
}
