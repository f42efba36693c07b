package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/spf13/cobra"
)

// logOptions are the options of codex-mcp log.
type logOptions struct {
	file          string // "" is that of approvals.log
	head          string
	thread, since string
	html          string
}

func (o *options) logCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Check and show the record of approvals",
		Long: `Checks and shows the record that approvals.log names: the questions, who decided
them, what ran, and how it ended. It changes nothing.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			return fmt.Errorf("want log head, log show or log verify, found %q", strings.Join(append([]string{"log"}, args...), " "))
		},
	}
	verify := &cobra.Command{
		Use:   "verify [flags] [file]",
		Short: "Check that no record was changed, removed or reordered",
		Long: `Checks the chain of the records in the file of approvals.log, or in another one, and
in the older file that it replaced (.1). It names each place where a record was
changed, is missing or is not in its place. Whoever can write the file can make a
whole new chain, or cut its end: only a head that you keep elsewhere shows that.`,
		Args: oneFile,
		RunE: o.logRunner(verifyLog),
	}
	verify.Flags().StringVar(&o.record.head, "head", "", "also check against this `HEAD`, which log head has printed before")
	head := &cobra.Command{
		Use:   "head [flags] [file]",
		Short: "Print the head of the record, to keep it elsewhere",
		Long: `Checks the record as verify does, and prints the number and the hash of its last
record. Keep them where who can change the record cannot: in a ticket, or a note
of git.`,
		Args: oneFile,
		RunE: o.logRunner(headOfLog),
	}
	show := &cobra.Command{
		Use:   "show [flags] [file]",
		Short: "Show what was asked, who decided, what ran and what changed",
		Long: `Shows each question with its decision, what ran because of it, how that ended and
what it changed, in the order of time, and what ran or was refused without a question.
Show does not check the record: verify does.`,
		Args: oneFile,
		RunE: o.logRunner(showLog),
	}
	show.Flags().StringVar(&o.record.thread, "thread", "", "only the thread with this `ID`, or beginning of an id")
	show.Flags().StringVar(&o.record.since, "since", "", "only what happened since this `TIME`: 2h, 2026-11-24 or 2026-11-24T10:00:00Z")
	show.Flags().StringVar(&o.record.html, "html", "", "write a page for a browser to this new `FILE`, which needs no network")
	cmd.AddCommand(verify, head, show)
	return cmd
}

// oneFile refuses more than one word after a command.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("log %s: want at most one file, found %q", cmd.Name(), strings.Join(args, " "))
	}
	return nil
}

func (o *options) logRunner(f func(o *options, paths []string, out io.Writer) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			o.record.file = args[0]
		}
		o.run = func(_ context.Context, o *options, stdout, stderr io.Writer) int {
			paths, err := o.recordPaths(stderr)
			if err == nil {
				out := bufio.NewWriter(stdout)
				err = errors.Join(f(o, paths, out), out.Flush())
			}
			switch {
			case errors.Is(err, errFaults):
				return 1
			case err != nil:
				return fail(stderr, err)
			}
			return 0
		}
		return nil
	}
}

// errFaults means that the faults of a record were printed.
var errFaults = errors.New("the record has faults")

// recordPaths returns the files of the record.
func (o *options) recordPaths(stderr io.Writer) ([]string, error) {
	file := o.record.file
	if file == "" {
		c, err := configure(o, os.Getenv, o.logger(stderr))
		if err != nil {
			return nil, err
		}
		if file = c.settings.Approvals.Log; file == "" {
			return nil, errors.New("the configuration names no approvals.log; name the file")
		}
	}
	return audit.Paths(file), nil
}

// check checks a record, and prints its faults.
func (o *options) check(paths []string, out io.Writer) (*audit.Report, error) {
	opts := &audit.Options{}
	if o.record.head != "" {
		var err error
		if opts.Head, err = audit.ParseHead(o.record.head); err != nil {
			return nil, fmt.Errorf("--head: %w", err)
		}
	}
	r, err := audit.Verify(paths, opts)
	if err != nil {
		return nil, err
	}
	const most = 20
	for i, f := range r.Faults {
		if i == most {
			fmt.Fprintf(out, "%d more\n", len(r.Faults)-most)
			break
		}
		fmt.Fprintln(out, elicit.OneLine(f.String(), 0))
	}
	if len(r.Faults) > 0 {
		return nil, errFaults
	}
	return r, nil
}

func verifyLog(o *options, paths []string, out io.Writer) error {
	r, err := o.check(paths, out)
	if err != nil {
		return err
	}
	if r.Plain > 0 {
		fmt.Fprintf(out, "%d older lines have no chain, and cannot be checked\n", r.Plain)
	}
	if r.First > 1 {
		fmt.Fprintf(out, "the records before %d are no longer here\n", r.First)
	}
	for _, l := range r.Unfinished {
		fmt.Fprintf(out, "record %d has no end: it still runs, or its server was killed\n", l.Chain.N)
	}
	if r.Missed > 0 {
		fmt.Fprintf(out, "%d records could not be written when they should have been\n", r.Missed)
	}
	if r.Cut {
		fmt.Fprintln(out, "the last line has no end, as when a server is killed while it writes")
	}
	if r.Lines == 0 {
		_, err := fmt.Fprintln(out, "there are no records")
		return err
	}
	_, err = fmt.Fprintf(out, "%d records, none changed, missing or reordered\nhead: %s\n", r.Lines, r.Head)
	return err
}

func headOfLog(o *options, paths []string, out io.Writer) error {
	r, err := o.check(paths, out)
	if err == nil && r.Lines == 0 {
		err = errors.New("there are no records")
	}
	if err == nil {
		_, err = fmt.Fprintln(out, r.Head)
	}
	return err
}

func showLog(o *options, paths []string, out io.Writer) error {
	filter := audit.Filter{Thread: o.record.thread}
	var err error
	if filter.Since, err = sinceTime(o.record.since, time.Now()); err != nil {
		return err
	}
	entries, omitted, err := audit.Timeline(paths, filter)
	if err != nil {
		return err
	}
	if o.record.html == "" {
		return writeTimeline(out, entries, omitted)
	}
	var page strings.Builder
	if err := writePage(&page, entries, omitted); err != nil {
		return err
	}
	if _, err := os.Lstat(o.record.html); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--html: %s exists; name a new file", o.record.html)
	}
	if err := safefile.Write(o.record.html, []byte(page.String()), 0o600); err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	return nil
}

// sinceTime reads a time, or how long ago it was. "" is the zero time.
func sinceTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	at, err := time.ParseInLocation(time.DateOnly, text, time.Local)
	if err != nil {
		return time.Time{}, fmt.Errorf("--since: want a time such as 2h, 2026-11-24 or 2026-11-24T10:00:00Z, found %.100q", text)
	}
	return at, nil
}
