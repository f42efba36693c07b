package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/shared"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/codexmcp/codexmcp/internal/program"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (o *options) pageCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "page [flags] [ID]",
		Short: "Print a new link to the approvals page",
		Long: `Prints a new link to the approvals page of a server or of ask, at a terminal only. The
link opens the page once, within an hour. If several processes with the same $CODEX_HOME
have a page, it lists them. ID is the id of a process, the port of a page, or the id of a
conversation or its beginning.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			id := strings.Join(args, " ")
			if len(args) > 1 {
				return fmt.Errorf("page: want one ID, found %q", id)
			}
			o.run = func(ctx context.Context, stdout, stderr io.Writer) int {
				if err := printLink(ctx, id, stdout, stderr); err != nil {
					return fail(stderr, err)
				}
				return 0
			}
			return nil
		},
	}
}

var (
	errNoPage = errors.New("no process with this $CODEX_HOME has an approvals page; start the server or ask with --approvals page, or set approvals.where in codex-mcp.toml")
	// errNoTerminal keeps links out of logs, and from programs that run commands for a model.
	errNoTerminal = errors.New("standard output is not a terminal, and a link is only for a person; over ssh use ssh -t")
)

// printLink prints a new link to the page of the process that an id means, "" for the only one.
func printLink(ctx context.Context, id string, stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	home, err := config.Home(os.Getenv)
	if err != nil {
		return err
	}
	folder, err := shared.OpenPages(home)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	defer folder.Close()
	all, err := pages(ctx, folder, stderr)
	if err != nil {
		return err
	}
	found := slices.DeleteFunc(slices.Clone(all), func(s *shared.Status) bool { return id != "" && !hasPage(s, id) })
	switch {
	case len(all) == 0:
		return errNoPage
	case len(found) == 0:
		listPages(stdout, all)
		return fmt.Errorf("page: no process, port or conversation %.200q", id)
	case len(found) > 1:
		listPages(stdout, found)
		return errors.New("page: there are several; name one, as in codex-mcp page " + strconv.Itoa(found[0].PID))
	}
	if f, ok := stdout.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return fmt.Errorf("page: %w", errNoTerminal)
	}
	s := found[0]
	link, err := folder.Link(ctx, s.Name)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	link = terminal.Row(link)
	text := link + "\n"
	if _, secret, _ := strings.Cut(link, "#"); !strings.HasPrefix(link, s.Page.Address+"/") {
		text += "On the machine itself: " + terminal.Row(s.Page.Address) + "/#" + secret + "\n"
	}
	_, err = fmt.Fprintf(stdout, "%sIt opens the page of process %d once, within an hour. Who has it can decide for you.\n", text, s.PID)
	return err
}

// pages returns the processes that have a page, the newest first. It reports others to stderr.
func pages(ctx context.Context, folder *shared.Folder, stderr io.Writer) (all []*shared.Status, err error) {
	names, err := folder.Names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		s, err := folder.Status(ctx, name)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, shared.ErrAbsent): // it was killed
		case err != nil:
			fail(stderr, fmt.Errorf("page: a process is left out: %w", err))
		case s.Page != nil:
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *shared.Status) int { return cmp.Or(b.Began.Compare(a.Began), a.PID-b.PID) })
	return all, nil
}

// hasPage reports whether an id means a process.
func hasPage(s *shared.Status, id string) bool {
	return id == strconv.Itoa(s.PID) || strings.HasSuffix(s.Page.Address, ":"+id) ||
		slices.ContainsFunc(s.Page.Threads, func(thread string) bool { return strings.HasPrefix(thread, id) })
}

// listPages prints one line for each process.
func listPages(w io.Writer, all []*shared.Status) {
	for _, s := range all {
		questions := fmt.Sprintf("%d open questions", s.Page.Open)
		if s.Page.Open == 1 {
			questions = "1 open question"
		}
		fmt.Fprintf(w, "process %d: %s in %s, %s, %d conversations, since %s\n",
			s.PID, terminal.Row(s.Page.Address), terminal.Row(s.Page.Folder), questions, len(s.Page.Threads), s.Began.Local().Format(time.DateTime))
	}
}

// offerLinks lets codex-mcp page print links to a page. It returns a function that ends this, or
// nil if it cannot be: the page is of use without it.
func (c *configuration) offerLinks(p *page.Page, o *codexserver.Options) func() error {
	if c.observer != nil { // a worker: no person is at its machine
		return nil
	}
	folder, err := shared.OpenPages(c.home)
	if err != nil {
		c.log.Info("codex-mcp page prints no link to this page", "reason", err)
		return nil
	}
	began, wd := time.Now(), ""
	if wd, err = os.Getwd(); err != nil {
		wd = "a folder that has gone"
	}
	links := &shared.Links{
		Version: program.Version(), New: p.Link, Logger: c.log,
		Status: func() *shared.Status {
			threads, open := p.Shown()
			return &shared.Status{
				PID: os.Getpid(), Version: program.Version(), Began: began, About: "engine " + o.EngineName,
				Page: &shared.Page{Address: p.Address(), Folder: filepath.Clean(wd), Threads: threads, Open: open},
			}
		},
	}
	if err := folder.Offer(links); err != nil {
		c.log.Info("codex-mcp page prints no link to this page", "reason", errors.Join(err, folder.Close()))
		return nil
	}
	return func() error { return errors.Join(links.Close(), folder.Close()) }
}
