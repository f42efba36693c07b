package main

import (
	"bytes"
	"cmp"
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

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (o *options) rulesCommand(settings *pflag.FlagSet) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules [flags]",
		Short: "List the rules that you accepted, explain and remove them",
		Long: `Lists the rules that were accepted with the answer to a question, for all servers
with the same $CODEX_HOME. Rules that Codex keeps itself are listed with their file.
Rules of codex-mcp.toml are not listed: they are yours to read there.`,
		Args: o.noWords,
		RunE: func(*cobra.Command, []string) error { o.run = withRules(listRules); return nil },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print each rule as one line of JSON")
	check := &cobra.Command{
		Use:   "check [flags] -- command [word …]",
		Short: "Explain whether a command would be asked about",
		Long: `Explains what the native engine would do with a command: whether it runs, which rule
allows or denies it, and which rule a question would offer. It runs nothing.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("check: want a command, as in codex-mcp rules check -- git push")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			o.run = func(_ context.Context, o *options, stdout, stderr io.Writer) int {
				return checkRules(o, args, stdout, stderr)
			}
			return nil
		},
	}
	check.Flags().AddFlagSet(settings)
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
	cmd.AddCommand(check, remove, o.tryCommand(settings))
	return cmd
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

// checkRules runs codex-mcp rules check.
func checkRules(o *options, argv []string, stdout, stderr io.Writer) int {
	c, err := configure(o, os.Getenv, o.logger(stderr))
	var text string
	if err == nil {
		text, err = c.explain(o, argv)
	}
	_, writeErr := io.WriteString(stdout, text)
	if err = errors.Join(err, writeErr); err != nil {
		return fail(stderr, err)
	}
	return 0
}

// explain returns what the native engine would do with a command.
func (c *configuration) explain(o *options, argv []string) (string, error) {
	dir, err := existingFolder(o.folder)
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	cfg, err := config.Load(config.Layers{Home: c.home, Overrides: c.overrides, Call: protocol.Config{Cwd: dir}})
	if err != nil {
		return "", err
	}
	env := os.Environ()
	for name, value := range cfg.ShellEnvironment.Set {
		env = append(env, name+"="+value)
	}
	writable := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: cfg.SandboxWorkspaceWrite.WritableRoots}
	box := sandbox.New(sandbox.Options{Tier: sandbox.Tier(c.settings.Sandbox.Tier), Helper: c.settings.Sandbox.Helper})
	_, unavailable := box.Confine(protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, dir, env)
	in := policy.Input{
		Policy: cfg.ApprovalPolicy, Sandbox: cfg.SandboxMode, SandboxAvailable: unavailable == nil, Strict: c.settings.Sandbox.Strict, Command: argv,
		Person: policy.Asks(c.settings.Approvals.Ask, argv),
	}
	q := protocol.ExecApprovalRequest{Command: argv, Cwd: dir, Placed: true}
	place := policy.Place{Dir: dir, Env: env, Roots: sandbox.AskedRoots(writable, dir, env)}
	if q.Program, q.Replaceable = place.Replaceable(argv); !q.Replaceable {
		if sum, ok := place.Content(argv); ok {
			q.Content = sum
		}
	}
	q.Unasked = place.Unasked(argv).Unasked
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s, approval policy %s, sandbox mode %s, native engine\n", elicit.ShowCommand(argv), elicit.ShowCommand([]string{dir}), in.Policy, in.Sandbox)
	verdict := policy.Decide(in)
	fmt.Fprintf(&b, "at first: %s\n", c.verdict(verdict, q))
	if then := cmp.Or(verdict.Then, verdict.Action); then == policy.RunSandboxed && in.Policy != protocol.ApprovalNever || verdict.Action == policy.Ask && verdict.Confinable {
		again := policy.Verdict{Action: policy.Ask}
		fmt.Fprintf(&b, "to run outside the sandbox: %s\n", c.verdict(again, q))
	}
	_, err = rulefile.New(c.home, nil).List()
	return b.String(), err
}

// verdict returns what happens to a command.
func (c *configuration) verdict(v policy.Verdict, q protocol.ExecApprovalRequest) string {
	switch v.Action {
	case policy.Run:
		return "runs without a question, without a sandbox"
	case policy.RunSandboxed:
		return "runs in the sandbox, without a question"
	case policy.RunReadOnly:
		return "runs in the read-only sandbox, without a question: it is known to only read"
	case policy.Refuse:
		return v.Reason
	}
	q.Confinable = v.Confinable
	b := board.New(&board.Options{Rules: c.rules(), Kept: rulefile.New(c.home, nil)}, nil)
	d := b.Decide(context.Background(), &approval.Request{Event: q, Question: &elicit.Question{}})
	if d.By == approval.ByRule {
		return d.Detail
	}
	if b.Person(&q) {
		return "asked: " + cmp.Or(v.Reason, policy.AsksAbout)
	}
	p, err := policy.Explain(&q)
	if err != nil {
		return "asked, without a rule to accept: " + err.Error()
	}
	return "asked; you can always allow " + p.Words
}
