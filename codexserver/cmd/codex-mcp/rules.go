package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy/rulefile"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
)

func (o *options) rulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules [flags]",
		Short: "List, add and remove rules that let commands run in the sandbox",
		Long: `Lists the rules that were accepted with the answer to a question, and those that you
added, for all servers with the same $CODEX_HOME. They let commands run in the sandbox
without a question, never outside. Rules that Codex keeps itself are listed with their
file. Rules of codex-mcp.toml are not listed: they are yours to read there.`,
		Args: o.noWords,
		RunE: func(*cobra.Command, []string) error { o.run = withRules(listRules); return nil },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print each rule as one line of JSON")
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
		RunE: func(_ *cobra.Command, args []string) error {
			o.run = withRules(func(s *rulefile.Store, _ *options, _ string, out io.Writer) error { return addRule(s, args, out) })
			return nil
		},
	}
	remove := &cobra.Command{
		Use:   "remove number",
		Short: "Remove a rule",
		Long:  `Removes the rule with this number. Running servers no longer apply it.`,
		Args:  cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			number, err := o.number(args, "rule", "rules")
			if err != nil {
				return err
			}
			o.run = withRules(func(s *rulefile.Store, _ *options, _ string, _ io.Writer) error { return s.Remove(number) })
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return ruleNumbers(args), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.AddCommand(add, remove)
	return cmd
}

// addRule adds the rule by a beginning, and shows it.
func addRule(s *rulefile.Store, prefix []string, out io.Writer) error {
	rule := rulefile.Rule{Prefix: prefix}
	kept, err := s.Add(rulefile.Kept{Rule: rule, By: rulefile.ByCommand, Words: rule.Words()})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%4d  %s\n", kept.Number, terminal.Row(kept.Words))
	return err
}

// number returns the number of what a command removes, which another command lists.
func (o *options) number(args []string, what, list string) (int, error) {
	text := strings.Join(args, " ")
	number, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("remove: want the number of a %s, found %q; %s %s lists the numbers", what, text, o.name, list)
	}
	return number, nil
}

// withRules returns a runner with the rules of the home.
func withRules(f func(s *rulefile.Store, o *options, home string, out io.Writer) error) runner {
	return func(_ context.Context, o *options, stdout, stderr io.Writer) int {
		home, err := config.Home(os.Getenv)
		if err == nil {
			err = f(rulefile.New(home, nil), o, home, stdout)
		}
		if err != nil {
			return fail(stderr, err)
		}
		return 0
	}
}

// ruleNumbers completes the number of a rule.
func ruleNumbers(args []string) (numbers []cobra.Completion) {
	home, err := config.Home(os.Getenv)
	if err != nil || len(args) > 0 {
		return nil
	}
	kept, _ := rulefile.New(home, nil).List()
	for _, k := range kept {
		numbers = append(numbers, cobra.CompletionWithDesc(strconv.Itoa(k.Number), terminal.Row(k.Rule.Words())))
	}
	return numbers
}

// listRules shows our rules, then Codex's. It reports a file that cannot be read after them.
func listRules(s *rulefile.Store, o *options, home string, out io.Writer) error {
	kept, err := s.List()
	theirs, theirErr := codexRules(home)
	var b bytes.Buffer
	for _, k := range kept {
		if o.json {
			if raw, err := json.Marshal(k); err == nil { // what was read can always be encoded
				b.WriteString(terminal.Line(raw))
			}
			continue
		}
		by := k.By
		if k.Principal != "" {
			by += " of " + k.Principal
		}
		fmt.Fprintf(&b, "%4d  %s\n      accepted %s by the %s\n", k.Number, terminal.Row(k.Rule.Words()), k.At.Local().Format(time.DateTime), terminal.Row(by))
	}
	if len(kept) == 0 && err == nil && !o.json {
		b.WriteString("no rules were accepted\n")
	}
	file := ""
	for _, r := range theirs {
		switch {
		case o.json:
			if raw, err := json.Marshal(r); err == nil {
				b.WriteString(terminal.Line(raw))
			}
			continue
		case r.File != file:
			file = r.File
			fmt.Fprintf(&b, "\nCodex's own rules, which only Codex applies and changes, in %s:\n", terminal.Row(file))
		}
		fmt.Fprintf(&b, "      %s\n", terminal.Row(r.Text))
	}
	_, writeErr := out.Write(b.Bytes())
	return errors.Join(err, theirErr, writeErr)
}

// codexRule is a rule that Codex keeps.
type codexRule struct {
	File string `json:"codexFile"`
	Text string `json:"text"`
}

// codexRules returns the rules in Codex's files, as they are written there.
func codexRules(home string) (rules []codexRule, err error) {
	dir := filepath.Join(home, "rules")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".rules" {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, readErr := safefile.Read(path, 1<<20)
		if readErr != nil {
			err = errors.Join(err, readErr)
			continue
		}
		begun := false
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			switch {
			case line == "" || line[0] == '#':
			case strings.Contains(line, "_rule(") || strings.HasPrefix(line, "host_executable("):
				rules, begun = append(rules, codexRule{path, line}), true
			case begun:
				rules[len(rules)-1].Text += " " + line
			}
		}
	}
	return rules, err
}
