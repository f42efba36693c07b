package main

import (
	"context"
	"fmt"
	"io"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/spf13/cobra"
)

// completionCommand prints the completion script of a shell.
func (o *options) completionCommand() *cobra.Command {
	shells := map[string]func(root *cobra.Command, w io.Writer) error{
		"bash": func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":  (*cobra.Command).GenZshCompletion,
		"fish": func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
	}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print the completion script of a shell",
		Long: `Prints the script that completes the commands and flags of ` + o.name + ` in a shell:

  bash   source <(` + o.name + ` completion bash)       needs the package bash-completion
  zsh    source <(` + o.name + ` completion zsh)        after compinit
  fish   ` + o.name + ` completion fish | source`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || shells[args[0]] == nil {
				return fmt.Errorf("completion: want the name of a shell: bash, zsh or fish")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.run = func(_ context.Context, _ *options, stdout, stderr io.Writer) int {
				if err := shells[args[0]](cmd.Root(), stdout); err != nil {
					return fail(stderr, err)
				}
				return 0
			}
			return nil
		},
	}
}

// completing reports whether a shell requests completions.
func completing(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// completeValues adds the completions of the flags' values.
func completeValues(root *cobra.Command) {
	values := map[string]cobra.CompletionFunc{
		"engine":           fixed(engines...),
		"approvals":        fixed("client", "page"),
		"log":              fixed("debug", "info", "warn", "error"),
		"log-format":       fixed("text", "json"),
		"sandbox":          fixed(words(protocol.SandboxModes())...),
		"ask-for-approval": fixed(words(protocol.ApprovalPolicies())...),
		"resume":           fixed("last"),
		"cd": func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	commands := []*cobra.Command{root}
	for i := 0; i < len(commands); i++ {
		commands = append(commands, commands[i].Commands()...)
	}
	for _, c := range commands {
		for name, complete := range values {
			if c.Flags().Lookup(name) != nil || c.PersistentFlags().Lookup(name) != nil {
				_ = c.RegisterFlagCompletionFunc(name, complete) // fails only for unknown flags
			}
		}
	}
}

func fixed(values ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}
