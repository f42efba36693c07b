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

	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A runner runs a command and returns the exit status.
type runner func(ctx context.Context, o *options, stdout, stderr io.Writer) int

// parse reads a command line, and sets options.run to the command. It prints the answer to
// flags such as --help itself, with one write, since grep -q closes a pipe after the first
// match. It fails with errOutput or with a mistake of the user.
func parse(name string, args []string, stdout, stderr io.Writer) (*options, error) {
	o := &options{name: name}
	root, flags := o.commandsFor(args)
	if completing(args) {
		completeValues(root)
	}
	var said bytes.Buffer
	root.SetOut(&said)
	root.SetErr(stderr)
	root.SetArgs(arrange(args, flags))
	if cmd, err := root.ExecuteC(); err != nil {
		return nil, &wrongLine{err, cmd.CommandPath(), cmd.HasParent()}
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

// wrongLine is what is wrong with a command line.
type wrongLine struct {
	error
	command string // the words of the command that it names
	one     bool   // which is not the program alone
}

func (w *wrongLine) Unwrap() error { return w.error }

// help says which help to read.
func (w *wrongLine) help() string {
	if w.one {
		return w.command + " --help explains it."
	}
	return w.command + " --help lists the commands and flags."
}

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

// commandsFor builds the tree of commands, which fill in o, and returns it with its flags. Clients
// start the server often, and then the other commands are left out.
func (o *options) commandsFor(args []string) (*cobra.Command, *pflag.FlagSet) {
	root, settings, server := o.rootCommand()
	flags := allFlags(root)
	switch named, starts := startsServer(args, flags); {
	case !starts:
		o.addCommands(root, settings, server)
		flags = allFlags(root)
	case named:
		root.AddCommand(o.serverCommand(serverWord, settings, server))
	}
	return root, flags
}

// rootCommand builds the root of the tree, and the flags that it shares with its commands.
func (o *options) rootCommand() (root *cobra.Command, settings, server *pflag.FlagSet) {
	root = &cobra.Command{
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
		Args: o.noWords,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
	root.SetUsageFunc(usage)
	o.commonFlags(root.PersistentFlags())
	o.foreignFlags(root.PersistentFlags())
	settings, server = o.settingFlags(), o.serverFlags()
	root.Flags().AddFlagSet(settings)
	root.Flags().AddFlagSet(server)
	return root, settings, server
}

// serverWord is the command that starts the server, as the root itself does.
const serverWord = "mcp-server"

// addCommands adds all commands to the root.
func (o *options) addCommands(root *cobra.Command, settings, server *pflag.FlagSet) {
	// Codex up to 0.42 has the commands mcp and mcp serve.
	old, older := o.serverCommand("mcp", settings, server), o.serverCommand("serve", settings, server)
	old.Hidden, older.Hidden = true, true
	old.AddCommand(older)
	root.AddCommand(o.serverCommand(serverWord, settings, server), old, o.httpCommand(settings), o.askCommand(), o.sharedCommand(), o.pageCommand(), o.rulesCommand(), o.doctorCommand(settings), o.completionCommand(), flagsTopic())
}

func (o *options) serverCommand(word string, settings, server *pflag.FlagSet) *cobra.Command {
	cmd := &cobra.Command{
		Use:   word,
		Short: "Serve MCP on standard input and output (the default)",
		Long: `Serves MCP on standard input and output until the input ends or a signal comes.
The old commands mcp and mcp serve mean the same.

When a client that has sent initialize closes the input, its turns end. When the
input has no initialize, as in codex-mcp mcp-server <requests.jsonl, the server
first finishes and answers the calls.`,
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
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, task []string) error {
			o.ask.wanted, o.ask.task, o.run, o.announcing = true, task, ask, linkOnce
			return o.ask.check(cmd.Flags())
		},
	}
	o.ask.flags(cmd.Flags())
	cmd.Flags().BoolVar(&o.json, "json", false, "print events and the result as JSON, one on each line")
	return cmd
}

func (o *options) doctorCommand(settings *pflag.FlagSet) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the configuration and show which engine runs",
		Long: `Checks the configuration, Codex, the native engine's provider and the sandbox.
It says whether tasks can run, with what, and what is missing. The exit status
is 1 when no task can run.`,
		Args: o.noWords,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.run, o.quiet = examine, !cmd.Flags().Changed("log")
			return nil
		},
	}
	cmd.Flags().AddFlagSet(settings)
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "print each check too")
	return cmd
}

// notCodex answers users who started this program as codex but want Codex.
const notCodex = "this codex is codex-mcp, with the commands mcp-server, http, ask, shared, page, rules and doctor; start Codex itself by its own path"

// noWords refuses arguments after a command that takes none.
func (o *options) noWords(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	words := strings.Join(append(strings.Fields(cmd.CommandPath())[1:], args...), " ")
	if o.name == "codex" {
		return fmt.Errorf("unknown command %q; %s", words, notCodex)
	}
	if advice := elsewhere(args[0]); advice != "" && !cmd.HasParent() {
		return fmt.Errorf("%q is not a command: %s", args[0], strings.ReplaceAll(advice, "PROGRAM", o.name))
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("unknown command %q; do you mean %s?", words, strings.Join(near, " or "))
	}
	if cmd.HasParent() {
		command := strings.Join(strings.Fields(cmd.CommandPath())[1:], " ")
		var parts []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				parts = append(parts, command+" "+c.Name())
			}
		}
		if parts != nil {
			return fmt.Errorf("unknown command %q; want %s, alone or as %s", words, command, text.Or(parts))
		}
		return fmt.Errorf("%s: want no words after it, found %q; to run a task, write %s ask %[2]q", command, strings.Join(args, " "), o.name)
	}
	return fmt.Errorf("unknown command %q; to run a task, write %s ask %q", words, o.name, strings.Join(args, " "))
}

// elsewhere says, for a word that other programs have as a command, what to do here, and "" for
// other words; PROGRAM is the program's name.
func elsewhere(word string) string {
	return map[string]string{
		"login":      signIn,
		"logout":     "sign out with codex logout, or unset the key",
		"auth":       signIn,
		"exec":       runTask,
		"e":          runTask,
		"run":        runTask,
		"review":     `write PROGRAM ask "review the uncommitted changes"`,
		"resume":     `write PROGRAM ask --resume last "…"`,
		"apply":      "the agent has already changed the files; git diff shows how",
		"app-server": "that is a command of Codex, which PROGRAM starts itself; --codex names the program",
		"serve":      "without a command PROGRAM serves one client; PROGRAM http serves many",
		"server":     "without a command PROGRAM serves one client; PROGRAM http serves many",
		"start":      "a client starts PROGRAM itself; PROGRAM http is a server that you start",
		"version":    "write PROGRAM --version",
		"update":     newVersion,
		"upgrade":    newVersion,
		"install":    setUp,
		"init":       setUp,
		"setup":      setUp,
		"config":     "the configuration is $CODEX_HOME/config.toml and codex-mcp.toml next to it; PROGRAM doctor checks them",
		"demo":       "write PROGRAM ask --demo",
		"models":     "the tool codex-models lists them; PROGRAM doctor shows the one that is configured",
		"sandbox":    "--sandbox MODE says what commands may touch",
	}[word]
}

const (
	signIn     = "sign in with codex login of the installed Codex, or set OPENAI_API_KEY; PROGRAM doctor shows what is missing"
	runTask    = `write PROGRAM ask "…" to run a task`
	newVersion = "install it again in the way that you installed it"
	setUp      = "add PROGRAM to the configuration of your client; PROGRAM doctor checks the rest"
)

// flagError says in plain words what is wrong with a flag, and which command or flag was meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &missing):
		return fmt.Errorf("--%s: want a value", missing.GetFlag().Name)
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s: %w, found %q", invalid.GetFlag().Name, invalid.Unwrap(), invalid.GetValue())
	case !errors.As(err, &unknown):
		return err
	}
	name := unknown.GetSpecifiedName()
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		name, err = letters, fmt.Errorf("unknown flag: -%s", letters)
	}
	var owners []string
	for _, c := range cmd.Root().Commands() {
		if !c.Hidden && c.Flags().Lookup(name) != nil {
			owners = append(owners, c.CommandPath())
		}
	}
	if len(owners) > 0 {
		return fmt.Errorf("--%s is a flag of %s", name, strings.Join(owners, " and "))
	}
	var known []string
	allFlags(cmd.Root()).VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			known = append(known, f.Name)
		}
	})
	if meant := text.Nearest(name, slices.Values(known)); meant != "" {
		return fmt.Errorf("%w; do you mean --%s?", err, meant)
	}
	return err
}

// allFlags returns the flags of every command. Flags with the same name take a value in all
// commands or in none.
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
