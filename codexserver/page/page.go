package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/webaddr"
)

// Options change what a [Page] does. Nil is valid; the zero value of each field
// is its default.
type Options struct {
	// Port is the TCP port on 127.0.0.1. 0 takes any free one.
	Port int
	// Origin is the origin of a reverse proxy or a forwarded port by which browsers reach the page
	// too: https://HOST, with :PORT if it is not 443, or http:// of this machine. Links begin with
	// it. Default: none.
	Origin string
	// Announce receives a link that opens the page: at the start, and whenever a question
	// comes while no page is open. It may receive the same link again while that is unused
	// and has more than half of its lifetime left. It must not block. Default: none.
	Announce func(link string)
}

// A Page is a web server on the loopback interface, and the desk behind it. It
// implements approval.Desk.
type Page struct {
	host    string // of the listener
	options Options
	board   board
	door    door
	crowd   crowd
	work    work
	handler http.Handler // of requests whose Host was checked

	server *http.Server
	served chan struct{} // closed when the server no longer accepts
	done   chan struct{} // closed by Close
}

var errClosed = errors.New("page: closed")

// Listen starts a page, which the caller must close.
func Listen(o *Options) (*Page, error) {
	var options Options
	if o != nil {
		options = *o
	}
	if options.Origin != "" {
		var err error
		if options.Origin, err = webaddr.ParseOrigin(options.Origin); err != nil {
			return nil, fmt.Errorf("page: Options.Origin: %w", err)
		}
	}
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(options.Port)))
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	p := newPage(l.Addr().String(), &options)
	p.listen(l)
	p.announce()
	return p, nil
}

// listen serves a listener until Close.
func (p *Page) listen(l net.Listener) {
	p.server = &http.Server{
		ConnState:                    p.crowd.follow,
		Handler:                      http.HandlerFunc(p.serve),
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            5 * time.Second,
		ReadTimeout:                  10 * time.Second,
		WriteTimeout:                 10 * time.Second,
		IdleTimeout:                  time.Minute,
		MaxHeaderBytes:               64 << 10, // with the cookies of every other port
		ErrorLog:                     log.New(io.Discard, "", 0),
	}
	go func() {
		defer close(p.served)
		_ = p.server.Serve(l) // ends with Close, which is not an error
	}()
}

// newPage returns a page without a listener.
func newPage(host string, o *Options) *Page {
	p := &Page{host: host, options: *o, board: newBoard(), served: make(chan struct{}), done: make(chan struct{})}
	p.handler = p.routes()
	return p
}

// Link returns a new link, which opens the page once, within an hour. At most
// 8 unused links work; a new one replaces the oldest. Who has the link sees the
// conversations and answers their questions, so show it only to the user.
func (p *Page) Link() string { return p.link(p.door.invite()) }

func (p *Page) link(secret string) string {
	return cmp.Or(p.options.Origin, p.Address()) + "/#" + secret
}

// Address returns the page's own origin, as browsers send it.
func (p *Page) Address() string { return "http://" + p.host }

// Open returns the number of open questions.
func (p *Page) Open() int { return p.board.open() }

// Watched reports whether the page is open in a browser.
func (p *Page) Watched() bool { return p.work.watched() }

// Invite implements approval.Inviter.
func (p *Page) Invite() string {
	if p.Watched() {
		return ""
	}
	return "An approval is wanted. Decide at " + p.invitation()
}

// announce passes a link to Announce.
func (p *Page) announce() {
	if p.options.Announce != nil {
		p.options.Announce(p.invitation())
	}
}

// invitation returns a link as [door.announce] does.
func (p *Page) invitation() string { return p.link(p.door.announce()) }

// Event implements approval.Desk.
func (p *Page) Event(t approval.Thread, m protocol.EventMsg) { p.board.event(t, m) }

// Name implements approval.Desk.
func (p *Page) Name() approval.Decider { return approval.ByPage }

// Ask implements approval.Desk.
func (p *Page) Ask(ctx context.Context, r *approval.Request) (json.RawMessage, error) {
	select {
	case <-p.done:
		return nil, errClosed
	default:
	}
	q, err := p.board.ask(ctx, r)
	if err != nil {
		return nil, err
	}
	if !p.Watched() {
		p.announce()
	}
	select {
	case raw := <-q.answered:
		return raw, nil
	case <-ctx.Done():
		return p.board.withdraw(q, context.Cause(ctx))
	case <-p.done:
		return p.board.withdraw(q, errClosed)
	}
}

// Decided implements approval.Desk.
func (p *Page) Decided(r *approval.Request, d approval.Decision) {
	p.board.decided(r, end{
		State: stateDecided, Decision: d.Decision, By: d.By, Reason: d.Reason, Rule: plain.OneLine(d.RuleWords, 0),
		Feedback: elicit.ShowText(d.Feedback),
	})
}

// farewell is how long Close waits for the browsers to learn of it.
const farewell = 200 * time.Millisecond

// Close disconnects the browsers and ends the page. A pending Ask returns an error. Close
// may be called more than once.
func (p *Page) Close() error {
	first := p.work.close()
	if first {
		close(p.done)
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	_ = p.server.Shutdown(ctx)
	err := p.server.Close()
	p.work.handlers.Wait()
	<-p.served
	_ = p.server.Close() // of connections that were accepted meanwhile; err has any error
	if err != nil && first {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}
