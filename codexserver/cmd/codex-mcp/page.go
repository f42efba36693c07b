package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/page"
)

// hint is the advice for users of a client that cannot show questions.
const hint = "Use a client that supports elicitation in form mode, or start codex-mcp with --approvals page to decide in a browser."

// announcing says when the link of the page is printed to standard error.
type announcing int

const (
	linkAgain announcing = iota // at the start, and for each question while the page is not open in a browser
	linkOnce                    // at the start: a terminal shows the question
	linkNever                   // standard error is a file; codex-mcp page prints links
)

// openPage opens the approvals page, if the settings require it, prints its link to stderr,
// and lets codex-mcp page print others.
func (c *configuration) openPage(o *codexserver.Options, stderr io.Writer, when announcing) (io.Closer, error) {
	if !c.settings.Approvals.Pages() {
		if o.Approvals.Hint == "" {
			o.Approvals.Hint = hint
		}
		return io.NopCloser(nil), nil
	}
	links := make(chan string, 1)
	p, err := page.Listen(&page.Options{
		Port:   c.settings.Approvals.PagePort,
		Origin: c.settings.Approvals.PageOrigin,
		Announce: func(link string) {
			select {
			case links <- link:
			default: // the previous link is not printed yet
			}
		},
	})
	if err != nil {
		return nil, err
	}
	t := &shownPage{Page: p, offered: c.offerLinks(p, o), stop: make(chan struct{}), stopped: make(chan struct{})}
	show := func(link string) {
		if when == linkNever && t.offered != nil {
			fmt.Fprintln(stderr, "codex-mcp: codex-mcp page prints a link to the approvals page at", p.Address())
			return
		}
		fmt.Fprintln(stderr, "codex-mcp: see and decide at", link)
	}
	show(<-links) // the link of Listen
	o.Desk = p
	o.Approvals.Elsewhere = "on the approvals page and in codex-show"
	go func() {
		defer close(t.stopped)
		for {
			select {
			case link := <-links:
				if when != linkOnce {
					show(link)
				}
			case <-t.stop:
				return
			}
		}
	}()
	return t, nil
}

// shownPage is a page with a goroutine that prints its links, so that a client that does
// not read stderr does not delay a question.
type shownPage struct {
	*page.Page
	offered       func() error // ends the links of codex-mcp page, nil if there are none
	stop, stopped chan struct{}
}

// Close closes the page. It waits at most a second for a write to stderr.
func (t *shownPage) Close() error {
	var ended error
	if t.offered != nil {
		ended = t.offered()
	}
	err := errors.Join(ended, t.Page.Close())
	close(t.stop)
	select {
	case <-t.stopped:
	case <-time.After(time.Second):
	}
	return err
}
