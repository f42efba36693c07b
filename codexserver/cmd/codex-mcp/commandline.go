package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A runner runs a command and returns the exit status.
type runner func(ctx context.Context, stdout, stderr io.Writer) int

// parse reads a command line, and sets options.run to the command. It prints the answer to
// flags such as --help itself, with one write, since grep -q closes a pipe after the first
// match. It fails with errOutput or with a mistake of the user.
func parse(name string, args []string, stdout, stderr io.Writer) (*options, error) {
	o := &options{name: name}
	root := o.rootCommand()
	if onlyServes(args) { // clients start the server often
		root.AddCommand(o.serverCommand(serverWord))
		root.CompletionOptions.DisableDefaultCmd = true
	} else {
		o.addCommands(root)
	}
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeValues(root)
	}
	var said bytes.Buffer
	root.SetOut(&said)
	root.SetErr(stderr)
	root.SetArgs(twoDashes(args))
	if cmd, err := root.ExecuteC(); err != nil {
		return nil, &wrongLine{err, cmd.CommandPath()}
	}
	if said.Len() > 0 {
		if _, err := stdout.Write(said.Bytes()); err != nil {
			return nil, fmt.Errorf("%w: %w", errOutput, err)
		}
	}
	if len(o.refusals) > 0 {
		return nil, errors.New(strings.Join(o.refusals, "\n"))
	}
	return o, nil
}

// serverWord is the command that starts the server, as the root itself does.
const serverWord = "mcp-server"

// onlyServes reports whether a command line names no other command than the server, and asks for no help.
func onlyServes(args []string) bool {
	if len(args) > 0 && args[0] != serverWord && !strings.HasPrefix(args[0], "-") {
		return false
	}
	return !slices.ContainsFunc(args, func(arg string) bool {
		return slices.Contains([]string{"ask", "completion", "doctor", "help", "http", "mcp", "page", "rules", "shared", "-h", "--help"}, arg)
	})
}

// completeValues adds the completions of the flags' values.
func completeValues(cmd *cobra.Command) {
	for name, values := range map[string][]string{
		"engine": engines, "approvals": places, "sandbox": words(protocol.SandboxModes()), "ask-for-approval": words(protocol.ApprovalPolicies()),
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // fails only where the flag is missing
	}
	for _, sub := range cmd.Commands() {
		completeValues(sub)
	}
}

// oneDash are long flags that may have one dash.
var oneDash = []string{"approvals", "codex", "engine", "json", "log", "resume", "shared", "trace", "version"}

// twoDashes adds the second dash of the flags in oneDash.
func twoDashes(args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if slices.Contains(oneDash, name) && strings.HasPrefix(arg, "-") {
			args[i] = "-" + arg
		}
	}
	return args
}

// wrongLine is what is wrong with a command line, which names a command.
type wrongLine struct {
	error
	command string
}

func (w *wrongLine) Unwrap() error { return w.error }

// errOutput means that standard output cannot be written.
var errOutput = errors.New("standard output")

// programName returns the program's name in its own texts. It is codex if a link with that
// name started the program, for clients whose command line cannot be changed.
func programName(argv0 string) string {
	if strings.TrimSuffix(filepath.Base(argv0), ".exe") == "codex" {
		return "codex"
	}
	return "codex-mcp"
}

const about = `codex-mcp hands coding tasks to Codex for agents and editors that speak MCP. It
replaces codex mcp-server and takes the same flags.`

// rootCommand builds the root of the tree of commands, which fill in o. A command has the flags that it uses.
func (o *options) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   o.name,
		Short: "Serve MCP on standard input and output",
		Long: about + `

Without a command it serves MCP on standard input and output, like mcp-server.
MCP clients start it; see the first example.`,
		Example: `  ` + o.name + ` mcp-server -m gpt-5 -s workspace-write   the command for a client's configuration
  ` + o.name + ` http                                     serve many clients over HTTP
  ` + o.name + ` ask "why do the tests fail?"             run a task from this terminal
  ` + o.name + ` ask --demo                               see it work, without a key
  ` + o.name + ` doctor                                   check whether tasks can run`,
		RunE: func(*cobra.Command, []string) error {
			if o.name == "codex" && !o.version {
				return errors.New(notCodex)
			}
			return o.wantsServer()
		},
		SilenceErrors: true, SilenceUsage: true,
		SuggestionsMinimumDistance: 2,
	}
	root.Args = func(_ *cobra.Command, args []string) error {
		words := strings.Join(args, " ")
		switch {
		case len(args) == 0:
			return nil
		case o.name == "codex":
			return fmt.Errorf("unknown command %q; %s", words, notCodex)
		}
		if near := root.SuggestionsFor(args[0]); len(near) > 0 {
			return fmt.Errorf("unknown command %q; do you mean %s?", words, strings.Join(near, " or "))
		}
		return fmt.Errorf("unknown command %q; to run a task, write %s ask %[1]q", words, o.name)
	}
	root.SetGlobalNormalizationFunc(rename)
	o.serverFlags(root.Flags())
	return root
}

// addCommands adds all commands to the root.
func (o *options) addCommands(root *cobra.Command) {
	// Codex up to 0.42 has the commands mcp and mcp serve.
	old, older := o.serverCommand("mcp"), o.serverCommand("serve")
	old.Hidden, older.Hidden = true, true
	old.AddCommand(older)
	root.AddCommand(o.serverCommand(serverWord), old, o.httpCommand(), o.askCommand(), o.sharedCommand(), o.pageCommand(), o.rulesCommand(), o.doctorCommand())
}

// notCodex answers users who started this program as codex but want Codex.
const notCodex = "this codex is codex-mcp, with the commands mcp-server, http, ask, shared, page, rules and doctor; start Codex itself by its own path"

func (o *options) serverCommand(word string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   word,
		Short: "Serve MCP on standard input and output (the default)",
		Long: `Serves MCP on standard input and output until the input ends or a signal comes.
The old commands mcp and mcp serve mean the same.

When a client that has sent initialize closes the input, its turns end. When the
input has no initialize, as in codex-mcp mcp-server <requests.jsonl, the server
first finishes and answers the calls.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.wantsServer() },
	}
	o.serverFlags(cmd.Flags())
	return cmd
}

// serverFlags adds the flags of the server.
func (o *options) serverFlags(fs *pflag.FlagSet) {
	o.commonFlags(fs)
	o.settingFlags(fs)
	o.sharedFlag(fs)
	fs.BoolVarP(&o.version, "version", "V", false, "print the version and exit")
}

func (o *options) wantsServer() error {
	if o.folder != "" {
		var err error
		if o.folder, err = existingFolder(o.folder); err != nil {
			return err
		}
	}
	o.run = o.Run
	return nil
}

func (o *options) askCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ask [flags] task",
		Short: "Run one task from a terminal",
		Long: `Runs one task, shows the work, and asks in the terminal about what the sandbox
does not allow. By default the sandbox reads your files, writes nothing and has
no network; -a untrusted asks about every command that is not known to only read.
The task is the rest of the command line; - reads it from standard input.`,
		SuggestFor: []string{"exec", "run", "review", "resume", "demo"},
		Args:       cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, task []string) error {
			o.ask.wanted, o.ask.task, o.announcing = true, task, linkOnce
			o.run = func(ctx context.Context, stdout, stderr io.Writer) int { return ask(ctx, o, stdout, stderr) }
			return o.ask.check(cmd.Flags())
		},
	}
	o.commonFlags(cmd.Flags())
	o.ask.flags(cmd.Flags())
	cmd.Flags().BoolVar(&o.ask.json, "json", false, "print events and the result as JSON, one on each line")
	return cmd
}

func (o *options) doctorCommand() *cobra.Command {
	d := &doctorOptions{options: o}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the configuration and show which engine runs",
		Long: `Checks the configuration, Codex, the native engine's provider and the sandbox.
It says whether tasks can run, with what, and what is missing. The exit status
is 1 when no task can run.`,
		SuggestFor: []string{"login", "auth", "config", "models", "setup"},
		Args:       cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			o.run = d.Run
			return nil
		},
	}
	o.commonFlags(cmd.Flags())
	o.settingFlags(cmd.Flags())
	cmd.Flags().BoolVar(&d.json, "json", false, "print JSON")
	cmd.Flags().BoolVarP(&d.verbose, "verbose", "v", false, "print each check too")
	return cmd
}
