// Command codex-mcp is the Codex MCP server on standard input and output.
//
//	codex-mcp [-c key=value]... [-log level] [-trace file]
//
// It speaks MCP to the program that started it, logs to standard error, and
// ends when its input ends or on SIGINT or SIGTERM. The configuration is
// $CODEX_HOME/config.toml (~/.codex by default), codex-mcp.toml beside it, and
// -c, which overrides keys of both.
//
// So that an old configuration changes by one word, these are the same:
//
//	codex-mcp mcp-server     codex-mcp mcp     codex-mcp mcp serve
//
// Exit status: 0 at the end of the input or after a signal; 1 when a
// configuration file or -c cannot be read; 2 when the arguments are wrong.
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
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
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
		fmt.Fprintln(stdout, "codex-mcp", version())
		return 0
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: o.log}))
	if err := serve(ctx, o, log); err != nil {
		fmt.Fprintln(stderr, "codex-mcp:", err)
		return 1
	}
	return 0
}

func serve(ctx context.Context, o *options, log *slog.Logger) error {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return err
	}
	settings, overrides, err := config.LoadSettings(home, o.overrides)
	if err != nil {
		return err
	}
	e, err := native.New(&native.Options{
		CodexHome: home,
		Overrides: overrides,
		Limits:    native.Limits(settings.Limits),
		Auth:      native.Auth(settings.Auth),
		Version:   version(),
		Logger:    log,
	})
	if err != nil {
		return err
	}
	record, err := appendTo(settings.ApprovalLog)
	if err != nil {
		return errors.Join(err, e.Close())
	}
	defer record.Close()
	traced, err := appendTo(o.trace)
	if err != nil {
		return errors.Join(err, e.Close())
	}
	defer traced.Close()
	err = codexserver.New(e, &codexserver.Options{
		Approvals:    settings.Approvals,
		Rules:        codexserver.Rules{Allow: settings.Allow, Deny: settings.Deny},
		Record:       record.writer(),
		Trace:        traced.writer(),
		SessionTools: settings.SessionTools,
		Version:      version(),
		Logger:       log,
	}).Serve(ctx, jsonrpc.Stdio())
	return errors.Join(err, e.Close())
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
	log       slog.Level
	trace     string
	version   bool
}

// aliases are the words under which the server was started before.
var aliases = [][]string{nil, {"mcp-server"}, {"mcp"}, {"mcp", "serve"}}

// parse reads flags before, between and after the words.
func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("codex-mcp", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintln(stderr, "usage: codex-mcp [-c key=value]... [-log level] [-trace file] [mcp-server | mcp | mcp serve]")
		fs.PrintDefaults()
	}
	override := func(s string) error { o.overrides = append(o.overrides, s); return nil }
	fs.Func("c", "override a configuration `key=value`; repeatable, keys may be dotted, values are TOML or plain text", override)
	fs.Func("config", "the same as -c", override)
	fs.TextVar(&o.log, "log", level(), "log to standard error from this `level` on: debug, info, warn or error")
	fs.StringVar(&o.trace, "trace", "", "append every message to this `file`, secrets replaced")
	fs.BoolVar(&o.version, "version", false, "print the version and exit")
	var words []string
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		if args = fs.Args(); len(args) == 0 {
			break
		}
		words, args = append(words, args[0]), args[1:]
	}
	if !slices.ContainsFunc(aliases, func(a []string) bool { return slices.Equal(a, words) }) {
		fmt.Fprintf(stderr, "unknown command %q\n", strings.Join(words, " "))
		fs.Usage()
		return nil, errors.New("unknown command")
	}
	return o, nil
}

// version is the module's as the build recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}

// level reads RUST_LOG, as the old server did, where it is one plain word.
func level() slog.Level {
	l := slog.LevelWarn
	if err := l.UnmarshalText([]byte(os.Getenv("RUST_LOG"))); err != nil {
		return slog.LevelWarn
	}
	return l
}
