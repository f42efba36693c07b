package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A runner does what a command line asks for and returns the exit status.
type runner func(ctx context.Context, o *options, stdout, stderr io.Writer) int

// parse reads a command line. It answers some itself on stdout, such as --help,
// in one write: grep -q closes a pipe after the first match. What is to be done
// then is options.run. Its error is errOutput or the user's mistake.
func parse(name string, args []string, stdout, stderr io.Writer) (*options, error) {
	o := &options{name: name}
	root := o.commands()
	if completing(args) {
		completeValues(root)
	}
	var said bytes.Buffer
	root.SetOut(&said)
	root.SetErr(stderr)
	root.SetArgs(arrange(args, allFlags(root)))
	if err := root.Execute(); err != nil {
		return nil, err
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

// errOutput says that standard output takes no more.
var errOutput = errors.New("standard output")

// programName is the name under which the program speaks of itself: codex
// where a link has that name, for clients whose command line cannot be changed.
func programName(argv0 string) string {
	if strings.TrimSuffix(filepath.Base(argv0), ".exe") == "codex" {
		return "codex"
	}
	return "codex-mcp"
}

const about = `codex-mcp hands coding tasks to Codex for agents and editors that speak MCP. It
replaces codex mcp-server and takes the same flags.`

// commands builds the tree of commands, which fill in o.
func (o *options) commands() *cobra.Command {
	root := &cobra.Command{
		Use:   o.name,
		Short: "Serve MCP on standard input and output",
		Long: about + `

Without a command it serves MCP on standard input and output, as mcp-server
does; a client starts it.`,
		Example: `  ` + o.name + ` mcp-server -m gpt-5 -s workspace-write   serve MCP, for a client's configuration
  ` + o.name + ` http                                     serve MCP over HTTP, for many clients
  ` + o.name + ` ask "why do the tests fail?"             hand over a task from here
  ` + o.name + ` tasks                                    see what clients have handed over
  ` + o.name + ` doctor                                   find out what is missing`,
		Args: o.noWords,
		RunE: func(*cobra.Command, []string) error {
			if o.name == "codex" && !o.version {
				return errors.New(notCodex)
			}
			return o.wantsServer()
		},
		SilenceErrors: true, SilenceUsage: true,
		SuggestionsMinimumDistance: 2,
		CompletionOptions:          cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetGlobalNormalizationFunc(rename)
	root.SetFlagErrorFunc(flagError)
	o.commonFlags(root.PersistentFlags())
	o.foreignFlags(root.PersistentFlags())
	settings, server := o.settingFlags(), o.serverFlags()
	root.Flags().AddFlagSet(settings)
	root.Flags().AddFlagSet(server)
	// The words of Codex up to 0.42 are mcp and mcp serve.
	old, older := o.serverCommand("mcp", settings, server), o.serverCommand("serve", settings, server)
	old.Hidden, older.Hidden = true, true
	old.AddCommand(older)
	root.AddCommand(o.serverCommand("mcp-server", settings, server), old, o.httpCommand(settings), o.askCommand(), o.tasksCommand(), o.doctorCommand(settings), o.completionCommand())
	return root
}

func (o *options) serverCommand(word string, settings, server *pflag.FlagSet) *cobra.Command {
	cmd := &cobra.Command{
		Use:   word,
		Short: "Serve MCP on standard input and output, the default",
		Long: `Serves MCP on standard input and output until the input ends or a signal comes.
The old words mcp and mcp serve mean the same.

A client that has said initialize and goes away ends its turns. Input that ends
before any initialize, as that of codex-mcp mcp-server <requests.jsonl, has its
calls finished and answered first.`,
		Args: o.noWords,
		RunE: func(*cobra.Command, []string) error { return o.wantsServer() },
	}
	cmd.Flags().AddFlagSet(settings)
	cmd.Flags().AddFlagSet(server)
	return cmd
}

func (o *options) wantsServer() error {
	if o.folder != "" {
		var err error
		if o.folder, err = existingFolder(o.folder); err != nil {
			return err
		}
	}
	o.run = serveClient
	if o.connect != "" {
		o.run = connectClient
	}
	return nil
}

func (o *options) askCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ask [flags] task",
		Short: "Hand over one task from a terminal",
		Long: `Hands over one task from a terminal, shows the work and asks there before a
command runs. The task is the rest of the command line; - reads it from standard
input.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, task []string) error {
			o.ask.wanted, o.ask.task, o.run = true, task, ask
			return o.ask.check(cmd.Flags())
		},
	}
	o.ask.flags(cmd.Flags())
	cmd.Flags().BoolVar(&o.json, "json", false, "print events and the result as JSON, a line each")
	return cmd
}

func (o *options) doctorCommand(settings *pflag.FlagSet) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say which engine would run, and what is missing",
		Long: `Looks at the configuration, Codex, the native engine's provider and the sandbox
and prints what it found. The exit status is 1 when no turn can run.`,
		Args: o.noWords,
		RunE: func(*cobra.Command, []string) error { o.run = examine; return nil },
	}
	cmd.Flags().AddFlagSet(settings)
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// notCodex is for who has started this program as codex and means Codex.
const notCodex = "this codex is codex-mcp, which has codex mcp-server, codex http, codex ask, codex tasks and codex doctor; start Codex itself by its own path"

// noWords refuses words after a command that takes none.
func (o *options) noWords(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	words := strings.Join(append(strings.Fields(cmd.CommandPath())[1:], args...), " ")
	if o.name == "codex" {
		return fmt.Errorf("unknown command %q; %s", words, notCodex)
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("unknown command %q; is it %s?", words, strings.Join(near, " or "))
	}
	return fmt.Errorf("unknown command %q; for a task write %s ask %q", words, o.name, strings.Join(args, " "))
}

// flagError says of a flag that only another command has which one that is.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var owners []string
	for _, c := range cmd.Root().Commands() {
		if !c.Hidden && c.Flags().Lookup(unknown.GetSpecifiedName()) != nil {
			owners = append(owners, c.CommandPath())
		}
	}
	if len(owners) == 0 {
		return err
	}
	return fmt.Errorf("--%s belongs to %s", unknown.GetSpecifiedName(), strings.Join(owners, " and "))
}

// allFlags are the flags of every command; those of one name take a value in
// all of them or in none.
func allFlags(root *cobra.Command) *pflag.FlagSet {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.SetNormalizeFunc(rename)
	all.BoolP("help", "h", false, "")
	for _, c := range append(root.Commands(), root) {
		all.AddFlagSet(c.PersistentFlags())
		all.AddFlagSet(c.Flags())
	}
	return all
}
