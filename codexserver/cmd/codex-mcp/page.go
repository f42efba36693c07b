package main

import (
	"fmt"
	"io"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/page"
)

// hint is what a caller is told to do about a client that cannot be asked.
const hint = "Use a client that supports elicitation in form mode, or start codex-mcp with --approvals page to decide in a browser."

// openPage puts the approvals page, if the settings want it, beside the client,
// and tells its link on stderr; again says whether also whenever there is a
// question and nobody has the page open. Without the page there is nothing to
// close.
func (c *configuration) openPage(o *codexserver.Options, stderr io.Writer, again bool) (io.Closer, error) {
	if !c.settings.Page {
		if o.Approvals.Hint == "" {
			o.Approvals.Hint = hint
		}
		return io.NopCloser(nil), nil
	}
	links := make(chan string, 1)
	p, err := page.Listen(&page.Options{
		Port: c.settings.PagePort,
		Announce: func(link string) {
			select {
			case links <- link:
			default: // the one before is still to be told
			}
		},
	})
	if err != nil {
		return nil, err
	}
	tell := func(link string) { fmt.Fprintln(stderr, "codex-mcp: see and decide at", link) }
	tell(<-links) // that of Listen
	o.Desk = p
	t := &toldPage{Page: p, stop: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(t.stopped)
		for {
			select {
			case link := <-links:
				if again {
					tell(link)
				}
			case <-t.stop:
				return
			}
		}
	}()
	return t, nil
}

// toldPage is a page with a goroutine that tells its links, for a client that
// does not read stderr must not keep a question waiting.
type toldPage struct {
	*page.Page
	stop, stopped chan struct{}
}

// Close waits for stderr only a moment.
func (t *toldPage) Close() error {
	err := t.Page.Close()
	close(t.stop)
	select {
	case <-t.stopped:
	case <-time.After(time.Second):
	}
	return err
}

// approvalPlaces are the words of --approvals, and what they set.
var approvalPlaces = map[string]string{"client": "approvals.page=false", "page": "approvals.page=true"}
