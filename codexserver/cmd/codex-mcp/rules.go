package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/spf13/cobra"
)

func (o *options) rulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "List, add and remove rules that let commands run in the sandbox",
		Long: `Lists the rules that were accepted with the answer to a question, and those that you
added, for all servers with the same $CODEX_HOME. They let commands run in the sandbox
without a question, never outside. Rules of codex-mcp.toml are not listed: they are yours
to read there.`,
		Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			o.run = withRules(listRules)
		},
	}
	add := &cobra.Command{
		Use:   "add -- command [word …]",
		Short: "Let commands that begin so run in the sandbox without a question",
		Long: `Adds a rule by the beginning of commands, for every folder. Such commands run in the
sandbox without a question, with any further words.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("add: want the beginning of commands, as in codex-mcp rules add -- go test")
			}
			return nil
		},
		Run: func(_ *cobra.Command, args []string) {
			o.run = withRules(func(s *rulefile.Store, out io.Writer) error { return addRule(s, args, out) })
		},
	}
	remove := &cobra.Command{
		Use:   "remove number",
		Short: "Remove a rule",
		Long:  `Removes the rule with this number. Running servers no longer apply it.`,
		Args:  cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			number, err := strconv.Atoi(strings.Join(args, " "))
			if err != nil {
				return fmt.Errorf("remove: want the number of a rule, found %q; %s rules lists the numbers",
					strings.Join(args, " "), o.name)
			}
			o.run = withRules(func(s *rulefile.Store, _ io.Writer) error { return s.Remove(number) })
			return nil
		},
		ValidArgsFunction: completeRule,
	}
	cmd.AddCommand(add, remove)
	return cmd
}

// addRule adds the rule by a beginning, and shows it.
func addRule(s *rulefile.Store, prefix []string, out io.Writer) error {
	rule := rulefile.Rule{Prefix: prefix}
	kept, err := s.Add(rulefile.Kept{Rule: rule, By: rulefile.ByCommand})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%4d  %s\n", kept.Number, terminal.Row(kept.Rule.Words()))
	return err
}

// withRules returns a runner with the rules of the home.
func withRules(f func(s *rulefile.Store, out io.Writer) error) runner {
	return func(_ context.Context, stdout, _ io.Writer) error {
		home, err := config.Home(os.Getenv)
		if err != nil {
			return err
		}
		return f(rulefile.New(home, nil), stdout)
	}
}

// listRules shows the rules.
func listRules(s *rulefile.Store, out io.Writer) error {
	kept, err := s.List()
	var b bytes.Buffer
	for _, k := range kept {
		by := k.By
		if k.Principal != "" {
			by += " of " + k.Principal
		}
		fmt.Fprintf(&b, "%4d  %s\n      accepted %s by the %s\n", k.Number, terminal.Row(k.Rule.Words()),
			k.At.Local().Format(time.DateTime), terminal.Row(by))
	}
	if len(kept) == 0 && err == nil {
		b.WriteString("no rules were accepted\n")
	}
	_, writeErr := out.Write(b.Bytes())
	return errors.Join(err, writeErr)
}
