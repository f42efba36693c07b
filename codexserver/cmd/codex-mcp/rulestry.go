package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/internal/audit/trial"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// statusChanged is the exit status of rules try if a command would be decided differently.
const statusChanged = 3

func (o *options) tryCommand(settings *pflag.FlagSet) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "try [flags] file",
		Short: "Play other rules over the record of approvals",
		Long: `Plays the rules of a file, written as codex-mcp.toml, over the commands in the record
that approvals.log names, and lists those that would be decided differently. With -a
or -s it also plays another policy. It runs nothing. The exit status is 0 if nothing
would be decided differently, and 3 otherwise.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("try: want one file with rules, as in codex-mcp rules try new.toml")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			o.run = func(ctx context.Context, o *options, stdout, stderr io.Writer) int {
				var b bytes.Buffer
				changed, err := o.tryRules(ctx, args[0], &b, stderr)
				_, werr := stdout.Write(b.Bytes())
				switch err = errors.Join(err, werr); {
				case err != nil:
					return fail(stderr, err)
				case changed:
					return statusChanged
				}
				return 0
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&o.record.file, "record", "", "the `FILE` with the record; default: that of approvals.log")
	for _, name := range []string{"ask-for-approval", "sandbox"} {
		cmd.Flags().AddFlag(settings.Lookup(name))
	}
	return cmd
}

// tryRules plays the rules of a file over the record, and prints what would be decided differently.
func (o *options) tryRules(ctx context.Context, file string, out *bytes.Buffer, stderr io.Writer) (changed bool, err error) {
	settings, err := config.ReadSettings(file)
	if err != nil {
		return false, err
	}
	paths, err := o.recordPaths(stderr)
	if err != nil {
		return false, err
	}
	c, err := configure(o, os.Getenv, o.logger(stderr))
	if err != nil {
		return false, err
	}
	given := func(key string) string { word, _ := c.overrides[key].(string); return word }
	tried := *c
	tried.settings = settings
	opts := trial.Options{
		Rules: tried.rules(), Policy: protocol.ApprovalPolicy(given("approval_policy")), Sandbox: protocol.SandboxMode(given("sandbox_mode")), Look: look,
	}
	if report, err := audit.Verify(paths, nil); err == nil && len(report.Faults) > 0 {
		fmt.Fprintf(stderr, "codex-mcp: the record has faults, which %s log verify shows\n", o.name)
	}
	r, err := trial.Try(ctx, paths, &opts)
	if err != nil {
		return false, err
	}
	count := map[trial.Fate]int{}
	for _, change := range r.Changes {
		count[change.Now]++
	}
	fmt.Fprintf(out, "of %s, %d would now run without a question, %d would be asked about, %d would be refused\n",
		commands(r.Commands), count[trial.Runs], count[trial.Asked], count[trial.Refused])
	if r.Fixed > 0 {
		fmt.Fprintf(out, "%s of these were not asked about by the installed Codex, whose policy these rules do not change\n", commands(r.Fixed))
	}
	if n := len(r.Unsure); n > 0 {
		fmt.Fprintf(out, "%s would begin in the sandbox, and would be asked about if it stops them\n", commands(n))
	}
	for _, change := range r.Changes {
		fmt.Fprintf(out, "%s  %s %s, and now %s\n    in %s, thread %s\n", change.Time.Local().Format(time.DateTime), elicit.ShowCommand(change.Command),
			past(change.Was), change.Now, elicit.ShowCommand([]string{change.Cwd}), elicit.OneLine(change.Thread, 100))
	}
	return len(r.Changes) > 0, nil
}

func commands(n int) string {
	if n == 1 {
		return "1 command"
	}
	return fmt.Sprintf("%d commands", n)
}

func past(fate trial.Fate) string {
	return map[trial.Fate]string{
		trial.Runs: "ran without a question", trial.Asked: "was asked about", trial.Refused: "was refused",
	}[fate]
}

// look looks up now what a command starts about which nobody was asked then.
func look(q *protocol.ExecApprovalRequest) {
	env := os.Environ()
	roots := sandbox.AskedRoots(protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite}, q.Cwd, env)
	q.Program, q.Replaceable = policy.Place{Dir: q.Cwd, Env: env, Roots: roots}.Replaceable(q.Command)
	q.Placed = true
}
