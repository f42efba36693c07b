package main

import (
	"fmt"
	"io"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/page"
)

// hint is what a caller is told to do about a client that cannot be asked.
const hint = "Use a client that supports elicitation in form mode, or start codex-mcp with -approvals page to decide in a browser."

// openPage puts the approvals page, if the settings want it, beside the client,
// and tells its link on stderr. Without it there is nothing to close.
func (c *configuration) openPage(o *codexserver.Options, stderr io.Writer) (io.Closer, error) {
	if !c.settings.Page {
		if o.Approvals.Hint == "" {
			o.Approvals.Hint = hint
		}
		return io.NopCloser(nil), nil
	}
	p, err := page.Listen(&page.Options{
		Port:     c.settings.PagePort,
		Announce: func(link string) { fmt.Fprintln(stderr, "codex-mcp: see and decide at", link) },
	})
	if err != nil {
		return nil, err
	}
	o.Desk = p
	return p, nil
}

// approvalPlaces are the words of -approvals, and what they set.
var approvalPlaces = map[string]string{"client": "approvals.page=false", "page": "approvals.page=true"}
