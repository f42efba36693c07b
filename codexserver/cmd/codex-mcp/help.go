package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const helpName = "help"

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:                   helpName + " [command]",
		Short:                 "Show what a command does, and its flags",
		Long:                  `Shows what a command does, and its flags, as --help after it.`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeCommand,
		RunE: func(c *cobra.Command, words []string) error {
			cmd, rest, err := c.Root().Find(words)
			if err != nil || len(rest) > 0 {
				return fmt.Errorf("unknown command %q", strings.Join(words, " "))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// completeCommand offers the commands below the one that the words name.
func completeCommand(
	c *cobra.Command, words []string, _ string,
) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	if cmd, rest, err := c.Root().Find(words); err == nil && len(rest) == 0 {
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// help prints the help of a command as wide as the terminal. The flags that all commands with an engine have stand in
// that of the program alone.
func help(cmd *cobra.Command, _ []string) {
	io.WriteString(cmd.OutOrStdout(), helpOf(cmd, helpWidth())) // a buffer
}

// helpWidth returns the columns of a help: those of the terminal, but no more than one reads well, or 80 without one.
func helpWidth() int {
	const most, usual = 120, 80
	if width := terminal.Width(os.Stdout); width > 0 {
		return min(width, most)
	}
	return usual
}

func helpOf(cmd *cobra.Command, width int) string {
	var b strings.Builder
	b.WriteString(terminal.Wrap(cmd.Long, width) + "\n\nUsage:\n")
	if cmd.Runnable() {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == helpName {
				fmt.Fprintf(&b, "  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	flags, common := cmd.LocalFlags(), []string(nil)
	if cmd.HasParent() {
		flags, common = ownFlags(cmd)
	}
	if flags.HasAvailableFlags() {
		b.WriteString("\nFlags:\n" + flags.FlagUsagesWrapped(width))
	}
	if len(common) > 0 {
		all := strings.Join(common, ", ")
		words := fmt.Sprintf("It also has these flags, which %s --help explains: %s.", cmd.Root().Name(), all)
		b.WriteString("\n" + terminal.Wrap(words, width) + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s help [command] shows more about a command.\n", cmd.Root().Name())
	}
	return b.String()
}

// ownFlags returns the flags of a command that the program itself does not have, and how the others are written.
func ownFlags(cmd *cobra.Command) (flags *pflag.FlagSet, common []string) {
	flags = newFlags()
	flags.SortFlags = true
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case cmd.Root().Flags().Lookup(f.Name) != f:
			flags.AddFlag(f)
		case f.Hidden:
		case f.Shorthand != "":
			common = append(common, "-"+f.Shorthand)
		default:
			common = append(common, "--"+f.Name)
		}
	})
	return flags, common
}

// shells are those that complete command lines, each with the function that prints its script.
var shells = []struct {
	name  string
	print func(root *cobra.Command, w io.Writer) error
}{
	{"bash", func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) }},
	{"zsh", (*cobra.Command).GenZshCompletion},
	{"fish", func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) }},
	{"powershell", (*cobra.Command).GenPowerShellCompletionWithDesc},
}

func completionCommand() *cobra.Command {
	var names []string
	for _, shell := range shells {
		names = append(names, shell.name)
	}
	return &cobra.Command{
		Use:   "completion " + strings.Join(names, "|"),
		Short: "Print a script with which a shell completes commands, flags and values",
		Long: `Prints a script with which a shell completes commands, flags and their values.
Write it to a file that your shell reads, such as one of these:

  bash        ~/.local/share/bash-completion/completions/codex-mcp
  zsh         _codex-mcp in a folder of $fpath
  fish        ~/.config/fish/completions/codex-mcp.fish
  powershell  at the end of $PROFILE`,
		ValidArgs: names, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, words []string) error {
			if len(words) == 1 {
				for _, shell := range shells {
					if shell.name == words[0] {
						return shell.print(cmd.Root(), cmd.OutOrStdout())
					}
				}
			}
			return errors.New("completion: want " + text.Or(names))
		},
	}
}
