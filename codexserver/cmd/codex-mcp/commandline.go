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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A runner runs a command. An error that is a status was printed.
type runner func(ctx context.Context, stdout, stderr io.Writer) error

// parse reads a command line, and sets options.run to the command. A flag such as --help is one too. It
// writes with one write, since grep -q closes a pipe after the first match. An error says what to correct.
func parse(name string, args []string, stderr io.Writer) (*options, error) {
	o := &options{name: name}
	root := o.commands(args)
	var said bytes.Buffer
	root.SetOut(&said)
	root.SetErr(stderr)
	args, err := twoDashes(root.Flags(), args)
	o.line = args
	root.SetArgs(args)
	cmd := root
	if err == nil {
		cmd, err = root.ExecuteC()
	}
	switch {
	case said.Len() > 0 || o.run == nil:
		o.run = prints(said.String())
	case o.version:
		o.run = prints(versionLine(o.name) + "\n")
	}
	if err == nil && len(o.refusals) > 0 {
		cmd, err = root, errors.New(strings.Join(o.refusals, "\n"))
	}
	if err != nil {
		if cmd.Name() == helpName {
			cmd = root
		}
		text := fmt.Sprintf("%s\n%s --help lists the commands and flags.", strings.TrimSpace(err.Error()),
			cmd.CommandPath())
		return nil, errors.New(text)
	}
	return o, nil
}

// prints returns a command that prints a text.
func prints(text string) runner {
	return func(_ context.Context, stdout, _ io.Writer) error {
		if _, err := io.WriteString(stdout, text); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
		return nil
	}
}

// oneDash are long flags that may have one dash.
var oneDash = []string{"approvals", "codex", "engine", "json", "log", "resume", "shared", "trace", "version"}

// twoDashes adds the second dash of the flags in oneDash. It fails for another long flag with one dash, which pflag reads as
// a short one and its value.
func twoDashes(flags *pflag.FlagSet, args []string) ([]string, error) {
	args = append([]string{}, args...) // never nil: cobra would take those of the process
	for i, arg := range args {
		if arg == "--" {
			break
		}
		flag, _, _ := strings.Cut(arg, "=")
		name, is := strings.CutPrefix(flag, "-")
		switch {
		case is && slices.Contains(oneDash, name):
			args[i] = "-" + arg
		case is && len(name) > 1 && flags.Lookup(name) != nil:
			return args, fmt.Errorf("-%s: write --%[1]s", name)
		}
	}
	return args, nil
}

// programName returns the program's name in its own texts. It is codex if a link with that
// name started the program, for clients whose command line cannot be changed.
func programName(argv0 string) string {
	if strings.TrimSuffix(filepath.Base(argv0), ".exe") == "codex" {
		return "codex"
	}
	return "codex-mcp"
}

// commands builds the tree of commands, which fill in o. A command has the flags that it uses; one that a command line does not
// name has none, since clients start the server often. Nil names all.
func (o *options) commands(line []string) *cobra.Command {
	root := o.rootCommand()
	// Codex up to 0.42 has the commands mcp and mcp serve.
	server, old, older := o.serverCommand("mcp-server"), o.serverCommand("mcp"), o.serverCommand("serve")
	old.Hidden, older.Hidden = true, true
	http, ask, doctor := o.httpCommand(), o.askCommand(), o.doctorCommand()
	common, settings, serving := o.commonFlags(), o.settingFlags(), o.serverFlags()
	for cmd, sets := range map[*cobra.Command][]*pflag.FlagSet{
		root: {common, settings, serving}, server: {common, settings, serving}, old: {common, settings, serving},
		older: {common, settings, serving},
		http:  {common, settings}, doctor: {common, settings}, ask: {common, settings},
	} {
		if named := line == nil || slices.Contains(line, cmd.Name()); !named && cmd != root {
			continue
		}
		for _, set := range sets {
			cmd.Flags().AddFlagSet(set)
		}
	}
	old.AddCommand(older)
	root.AddCommand(server, old, http, ask, doctor, o.sharedCommand(), o.pageCommand(), o.rulesCommand())
	root.AddCommand(completionCommand(), o.versionCommand())
	root.SetHelpCommand(helpCommand())
	root.SetHelpFunc(help)
	if len(line) > 0 && strings.HasPrefix(line[0], cobra.ShellCompRequestCmd) {
		o.completeValues(root, ask)
	}
	return root
}

func (o *options) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   o.name,
		Short: "Serve MCP on standard input and output",
		Long: `codex-mcp hands coding tasks of agents and editors that speak MCP to Codex, or to an
engine of its own. It replaces codex mcp-server and takes the same flags.

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
			return o.wantsServer(o.Run)
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
		case ofCodex[args[0]] != "":
			return fmt.Errorf("unknown command %q; %s", words, ofCodex[args[0]])
		}
		if near := root.SuggestionsFor(args[0]); len(near) > 0 {
			return fmt.Errorf("unknown command %q; do you mean %s?", words, strings.Join(near, " or "))
		}
		return fmt.Errorf("unknown command %q; to run a task, write %s ask %[1]q", words, o.name)
	}
	return root
}

// notCodex answers users who started this program as codex but want Codex.
const notCodex = "this codex is codex-mcp, with the commands mcp-server, http, ask, shared, page, rules and doctor; " +
	"start Codex itself by its own path"

// ofCodex are commands of Codex that people type, and what there is in their place.
var ofCodex = map[string]string{
	"login":   "sign in with codex login, or set the key of your provider; codex-mcp doctor says what is missing",
	"logout":  "sign out with codex logout",
	"config":  "edit config.toml and codex-mcp.toml in $CODEX_HOME; codex-mcp doctor checks them",
	"tasks":   "your agent lists them with the tool codex-list; codex-mcp shared shows what runs in shared servers",
	"cloud":   "this program has no cloud; codex-mcp ask runs a task here",
	"apply":   "a task changes the files of its folder itself",
	"update":  "install the new version as you installed this one",
	"sandbox": "codex-mcp ask runs a task whose commands are in a sandbox",
}

func (o *options) serverCommand(word string) *cobra.Command {
	return &cobra.Command{
		Use:   word,
		Short: "Serve MCP on standard input and output (the default)",
		Long: `Serves MCP on standard input and output until the input ends or a signal comes.
The old commands mcp and mcp serve mean the same.

When a client that has sent initialize closes the input, its turns end. When the
input has no initialize, as in codex-mcp mcp-server <requests.jsonl, the server
first finishes and answers the calls.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.wantsServer(o.Run) },
	}
}

// wantsServer makes a server the command.
func (o *options) wantsServer(run runner) (err error) {
	if o.run = run; o.folder != "" {
		o.folder, err = existingFolder(o.folder)
	}
	return err
}

func (o *options) doctorCommand() *cobra.Command {
	d := &doctorOptions{options: o}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the configuration and show which engine runs",
		Long: `Tries what a task needs: the configuration, Codex, the native engine's provider,
the sandbox, and the files, programs and folders that the configuration names.
It says whether tasks can run, with what, and what to do. The exit status is 1
when no task can run, or something that is configured does not hold. It takes
ten seconds at most, and costs no tokens.`,
		SuggestFor: []string{"auth", "models", "setup"},
		Args:       cobra.NoArgs,
		Run:        func(*cobra.Command, []string) { o.run = d.Run },
	}
	cmd.Flags().BoolVar(&d.json, "json", false, "print JSON")
	cmd.Flags().BoolVar(&d.start, "start", false, "also start the MCP servers of config.toml, and end them")
	return cmd
}

func (o *options) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  `Prints the version, and with what it was built.`,
		Args:  cobra.NoArgs,
		Run:   func(*cobra.Command, []string) { o.run = prints(versionLine(o.name) + "\n") },
	}
}
