package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/shared"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/codexmcp/codexmcp/internal/program"
	"github.com/spf13/cobra"
)

// hint is the advice for users of a client that cannot show questions.
const hint = "Use a client that supports elicitation in form mode, or start codex-mcp with --approvals page to " +
	"decide in a browser."

// announcing says when the link of the page is printed to standard error.
type announcing int

const (
	linkAgain announcing = iota // at the start, and for each question while the page is not open in a browser
	linkOnce                    // at the start: a terminal shows the question
	linkNever                   // standard error is the log of a shared server; codex-mcp page prints links
)

// openPage opens the approvals page, if the settings require it, prints its link to stderr,
// lets codex-mcp page print others, and returns what ends this.
func (c *configuration) openPage(
	o *codexserver.Options, stderr io.Writer, when announcing,
) (end func() error, err error) {
	if !c.settings.Approvals.Pages() {
		if o.Approvals.Hint == "" {
			o.Approvals.Hint = hint
		}
		return func() error { return nil }, nil
	}
	links := make(chan string, 1)
	p, err := c.listen(stderr, func(link string) {
		select {
		case links <- link:
		default: // the previous link is not printed yet
		}
	})
	if err != nil {
		return nil, err
	}
	o.Desk, c.page = p, p
	o.Approvals.Elsewhere = "on the approvals page and in codex-show"
	hide := func() error { return nil }
	if when != linkNever && c.observer == nil { // no person is at a worker's machine
		hide = c.offerLinks(o.EngineName)
	}
	show := func(link string) {
		if when == linkNever {
			fmt.Fprintln(stderr, "codex-mcp: codex-mcp page prints a link to the approvals page at", p.Address())
			return
		}
		fmt.Fprintln(stderr, "codex-mcp: see and decide at", link)
	}
	show(<-links) // the link of Listen
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // so that a client that does not read stderr does not delay a question
		defer close(stopped)
		for {
			select {
			case link := <-links:
				if when != linkOnce {
					show(link)
				}
			case <-stop:
				return
			}
		}
	}()
	return func() error {
		err := errors.Join(hide(), p.Close())
		close(stop)
		select {
		case <-stopped:
		case <-time.After(time.Second): // a write to stderr hangs
		}
		return err
	}, nil
}

// listen starts the page at the port of the settings, or at a free one, and says so: the server of another client may
// have the first. The origin of the settings leads to that one's page, so it is left out.
func (c *configuration) listen(stderr io.Writer, announce func(link string)) (*page.Page, error) {
	a := &c.settings.Approvals
	p, err := page.Listen(&page.Options{Port: a.PagePort, Origin: a.PageOrigin, Announce: announce})
	if _, taken := errors.AsType[*net.OpError](err); !taken || a.PagePort == 0 {
		return p, err
	}
	p, other := page.Listen(&page.Options{Announce: announce})
	if other != nil {
		return nil, err
	}
	where := p.Address()
	if a.PageOrigin != "" {
		where += ", without approvals.page_origin"
	}
	fmt.Fprintf(stderr, "codex-mcp: warning: approvals.page_port: %v; this page is at %s\n", errors.Unwrap(err), where)
	return p, nil
}

// portTaken returns why a page that starts now takes another port than that of the settings.
func portTaken(x *exam) error {
	a := &x.c.settings.Approvals
	if a.PagePort == 0 || !a.Pages() {
		return nil
	}
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(a.PagePort)))
	if err != nil {
		return fmt.Errorf("approvals.page_port: %w", err)
	}
	return l.Close()
}

// offerLinks lets codex-mcp page print links to the page, which is of use without them too.
func (c *configuration) offerLinks(engine string) (end func() error) {
	end = func() error { return nil }
	folder, err := shared.Open(c.home)
	server := &shared.Server{Folder: folder, Link: c.page.Link,
		Status: func() shared.Status { return c.status(engine) }, Logger: c.log}
	if err == nil {
		end, err = folder.Close, server.Listen()
	}
	if err != nil {
		c.log.Info("codex-mcp page prints no link to this page", "reason", err)
		return end
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	return func() error {
		stop()
		return errors.Join(<-ended, folder.Close())
	}
}

// status is what this process tells the user's other ones.
func (c *configuration) status(engine string) shared.Status {
	s := shared.Status{Version: program.Version(), About: "engine " + engine}
	if c.page != nil {
		folder, _ := os.Getwd()
		s.Page = &shared.Page{Address: c.page.Address(), Open: c.page.Open(),
			Folder: cmp.Or(folder, "a folder that has gone")}
	}
	return s
}

func (o *options) pageCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "page",
		Short: "Print new links to the approvals pages",
		Long: `Prints a new link to the approvals page of each server and ask with the same $CODEX_HOME,
at a terminal only. A link opens its page once, within an hour.`,
		Args: cobra.NoArgs,
		Run:  func(*cobra.Command, []string) { o.run = printLinks },
	}
}

var (
	errNoPage = errors.New("no process with this $CODEX_HOME has an approvals page; start the server or ask with " +
		"--approvals page, or set approvals.where in codex-mcp.toml")
	// errNoTerminal keeps links out of logs, and from programs that run commands for a model.
	errNoTerminal = errors.New("standard output is not a terminal, and a link is only for a person; " +
		"over ssh use ssh -t")
)

// printLinks prints a new link to the page of each process.
func printLinks(ctx context.Context, stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	folder, names, err := sockets(func(string) bool { return true })
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	defer folder.Close()
	if !terminal.IsTerminal(stdout) {
		return fmt.Errorf("page: %w", errNoTerminal)
	}
	folder.Patience = 3 * time.Second // a process may be stopped, as with Ctrl-Z
	var text strings.Builder
	all, _ := answers(ctx, folder, names, shared.Link, stderr)
	for _, s := range all {
		if s.Link == "" || s.Page == nil {
			continue
		}
		fmt.Fprintf(&text, "%s\n  of process %d in %s, open questions %d, since %s\n",
			terminal.Row(s.Link), s.PID, terminal.Row(s.Page.Folder), s.Page.Open,
			s.Began.Local().Format(time.DateTime))
		if _, secret, _ := strings.Cut(terminal.Row(s.Link), "#"); !strings.HasPrefix(s.Link, s.Page.Address+"/") {
			text.WriteString("  on the machine itself " + terminal.Row(s.Page.Address) + "/#" + secret + "\n")
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case text.Len() == 0:
		return errNoPage
	}
	_, err = io.WriteString(stdout, text.String()+"A link opens its page once, within an hour. Who has it can decide "+
		"for you.\n")
	return err
}
