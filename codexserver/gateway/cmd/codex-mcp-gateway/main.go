// Command codex-mcp-gateway serves MCP over HTTP to several users. It knows them by their
// tokens, and runs a codex-mcp for each of them in an enclosure of its own.
//
//	codex-mcp-gateway [flags]
//	codex-mcp-gateway --new-token NAME
//	codex-mcp-gateway status [--json]
//	codex-mcp-gateway drain NODE
//	codex-mcp-gateway user forget NAME
//
// The users are in the tables http.principals of $CODEX_HOME/codex-mcp.toml. --help lists all
// flags; codexserver/gateway/README.md has the keys. SIGHUP reloads the users.
//
// Exit status: 0 after a signal; 1 when it cannot start; 2 when the command line is wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	processes "github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/httpserve"
	common "github.com/codexmcp/codexmcp/internal/program"
	"github.com/spf13/pflag"
)

// program is the name of this program in its texts.
const program = "codex-mcp-gateway"

func main() {
	enclosure.Main() // first: this process may become the enclosure of a worker
	// Workers must not get this process's inherited files, its environment or its memory.
	if err := errors.Join(processes.SealDescriptors(), box.HideProcess()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		os.Exit(1)
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// options are the flags.
type options struct {
	httpserve.Flags
	newToken  string // the principal to make a token for
	codexMCP  string // the program of the workers; "" means the one next to this program
	overrides []string
	engine    string
	codex     string
	strict    bool
	log       slog.Level
	logFormat string
	version   bool
	json      bool
	command   []string // of the operator; empty to serve
}

// flags returns the flags, which set o.
func (o *options) flags() *pflag.FlagSet {
	fs := pflag.NewFlagSet(program, pflag.ContinueOnError)
	fs.SortFlags = false
	o.Add(fs)
	fs.StringVar(&o.newToken, "new-token", "",
		"make a token for the principal `NAME`, print it with its hash for codex-mcp.toml, and exit")
	fs.StringVar(&o.codexMCP, "codex-mcp", "",
		"the `PROGRAM` codex-mcp, from the same release; default: the one in the folder of this program")
	fs.FuncP("config", "c", "set a configuration `KEY=VALUE`; repeatable, keys may be dotted, values are TOML or "+
		"plain text", func(s string) error {
		o.overrides = append(o.overrides, s)
		return nil
	})
	fs.StringVar(&o.engine, "engine", "auto", "the `ENGINE` that runs the tasks: auto, codex or native")
	fs.StringVar(&o.codex, "codex", "", "the `PROGRAM` codex; default: $CODEX_BIN, else codex in the PATH")
	fs.BoolVar(&o.strict, "strict-config", false, "fail if config.toml has an unknown key (native engine)")
	fs.TextVar(&o.log, "log", slog.LevelWarn,
		"the lowest `LEVEL` that is logged to standard error: debug, info, warn or error")
	fs.StringVar(&o.logFormat, "log-format", "text", "the `FORMAT` of log lines: text or json")
	fs.BoolVar(&o.json, "json", false, "print the status as JSON")
	fs.BoolVarP(&o.version, "version", "V", false, "print the version and exit")
	return fs
}

const about = `codex-mcp-gateway serves MCP over HTTP to the users of http.principals in
$CODEX_HOME/codex-mcp.toml. Each user has a codex-mcp of its own, in an enclosure.

By default only this machine can connect. For other machines set http.hosts and
--behind-proxy.

Usage: codex-mcp-gateway [flags]
       codex-mcp-gateway status [--json]      prints the nodes and the users of a service
       codex-mcp-gateway drain NODE           gives the users of a node to other nodes
       codex-mcp-gateway user forget NAME     removes what is kept of a former user

`

// check checks the flags.
func (o *options) check(fs *pflag.FlagSet) error {
	for _, word := range []struct {
		flag, value string
		want        []string
	}{{"engine", o.engine, []string{"auto", "codex", "native"}},
		{"log-format", o.logFormat, []string{"text", "json"}}} {
		if !slices.Contains(word.want, word.value) {
			return fmt.Errorf("--%s: want one of %s", word.flag, strings.Join(word.want, ", "))
		}
	}
	if err := o.checkCommand(fs.Args()); err != nil {
		return err
	}
	if fs.Changed("new-token") {
		if err := settings.CheckPrincipalName(o.newToken); err != nil {
			return fmt.Errorf("--new-token: %w", err)
		}
	}
	return o.Check()
}

// checkCommand checks the arguments that are not flags.
func (o *options) checkCommand(args []string) error {
	o.command = args
	switch {
	case len(args) == 1 && args[0] == "status":
		return nil
	case o.json:
		return errors.New("--json: only for status")
	case len(args) == 0, len(args) == 2 && args[0] == "drain":
		return nil
	case len(args) == 3 && args[0] == "user" && args[1] == "forget":
		return nil
	}
	return fmt.Errorf("unexpected arguments %q; want status, drain NODE, or user forget NAME", args)
}

// run runs the program on other streams and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o := &options{}
	fs := o.flags()
	fs.Usage = func() {}
	err := fs.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return printed(stderr, write(stdout, about+fs.FlagUsages()))
	case err == nil && o.version:
		return printed(stderr, write(stdout, fmt.Sprintf("%s %s (%s)\n", program, common.Version(), common.Build())))
	case err == nil:
		err = o.check(fs)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n%[1]s --help lists the flags.\n", program, err)
		return 2
	}
	defer common.SurviveBrokenPipes()()
	if o.newToken != "" {
		return printed(stderr, o.printNewToken(stdout))
	}
	if len(o.command) > 0 {
		return printed(stderr, o.operate(ctx, stdout, stderr))
	}
	return printed(stderr, o.serve(ctx, stderr))
}

func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// printed prints an error, and returns the exit status.
func printed(stderr io.Writer, err error) int {
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", program, err)
		return 1
	}
	return 0
}

// printNewToken makes a token for a principal. It prints the token, its hash for
// codex-mcp.toml, and the configuration of clients. Nothing is stored.
func (o *options) printNewToken(w io.Writer) error {
	url := o.URL(mcpPath)
	// Ignore the error: a principal without a token is an error, and the new token fixes it.
	if c, err := o.configure(slog.New(slog.DiscardHandler)); err == nil && c.http.URL != "" {
		url = c.http.URL
	}
	token, hash := access.NewToken()
	_, err := fmt.Fprintf(w, `%[1]s

The token is not shown again, because the server keeps only its hash. Add the hash to
tokens in the table http.principals.%[2]s of codex-mcp.toml:

  [http.principals.%[2]s]
  tokens = ["%[3]s"]
`, token, o.newToken, hash)
	return errors.Join(err, httpserve.PrintClients(w, url, token))
}

// configuration is the configuration of the server.
type configuration struct {
	home     string
	settings *config.Settings
	http     settings.HTTP
	service  settings.Service
	workers  []string // those of -c that are for workers
}

func (o *options) configure(log *slog.Logger) (*configuration, error) {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return nil, err
	}
	c := &configuration{home: home}
	if c.workers, err = settings.ForWorkers(o.overrides); err != nil {
		return nil, err
	}
	if c.service, err = settings.LoadService(home); err != nil {
		return nil, err
	}
	if c.settings, _, err = config.LoadSettings(home, o.overrides); err != nil {
		return nil, err
	}
	for _, ignored := range c.settings.Ignored {
		log.Warn(ignored)
	}
	c.http, err = settings.Load(home, o.overrides, c.settings)
	return c, err
}

// workerProgram returns the path of codex-mcp, without symbolic links.
func (o *options) workerProgram() (path string, err error) {
	if path = o.codexMCP; path == "" {
		path, err = os.Executable()
		path = filepath.Join(filepath.Dir(path), "codex-mcp")
	}
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("--codex-mcp: %w; name the program codex-mcp of the same release", err)
	}
	return path, nil
}
