package hosts

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/internal/plain"
)

const (
	maxHead  = 16 << 10    // of a request
	maxOpen  = 8           // hosts that wait for an answer; others wait for these
	maxHosts = 100         // that a command may ask for
	linger   = time.Minute // for what one side has to say when the other has ended
)

// Decide decides whether the command may reach a host. It returns "" or, in words for the command, why not. It must
// return when ctx ends, which is when the command has ended.
type Decide func(ctx context.Context, host string) (refusal string)

// Answer is what came of a host that a command has asked for.
type Answer struct {
	Host    string // or, in quotes, what stood in the place of one
	Why     string // it was refused; "" if it was not
	Decided bool   // by a [Decide]
	Reached bool

	there context.Context // ends when the answer is there
}

// Network is the network of one command. It is safe for concurrent use.
type Network struct {
	proxy  *Proxy
	decide Decide
	ctx    context.Context
	cancel context.CancelFunc
	asking sync.WaitGroup
	open   chan struct{} // answers that are awaited

	mu      sync.Mutex
	answers []*Answer // and guards them
}

// Network begins the network of a command, which ends with ctx.
func (p *Proxy) Network(ctx context.Context, decide Decide) *Network {
	ctx, cancel := context.WithCancel(ctx)
	return &Network{proxy: p, decide: decide, ctx: ctx, cancel: cancel, open: make(chan struct{}, maxOpen)}
}

// Close withdraws what is asked, and waits for it. It returns what came of each host, in the order of the first attempt.
// Nothing may be served any more.
func (n *Network) Close() []*Answer {
	n.cancel()
	n.asking.Wait()
	return n.answers
}

// Serve serves a socket of the command, until it is closed or the network has ended.
func (n *Network) Serve(c net.Conn) {
	r := bufio.NewReader(io.LimitReader(c, maxHead))
	request, err := http.ReadRequest(r) // without a limit of time: a socket may stay idle, and 64 are served
	if err != nil {
		say(c, http.StatusBadRequest, "not a request to an HTTP proxy")
		return
	}
	a := n.answer(target(request))
	answered := make(chan struct{})
	stop := context.AfterFunc(a.there, func() {
		_ = c.SetReadDeadline(time.Unix(1, 0))
		close(answered)
	})
	if _, err := r.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		stop() // the program has not waited
		return
	}
	<-answered
	_ = c.SetReadDeadline(time.Time{})
	up, why, err := n.reach(a)
	switch {
	case why != "":
		say(c, http.StatusForbidden, a.Host+" was refused: "+why)
		return
	case err != nil:
		say(c, http.StatusBadGateway, a.Host+" cannot be reached: "+err.Error())
		return
	}
	defer up.Close()
	defer context.AfterFunc(n.ctx, func() { _ = up.Close() })()
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		pass(c, r, up)
	}
}

// target returns the host that a request asks for or, with why it cannot be asked for, what stands in its place.
func target(r *http.Request) (host, why string) {
	name, port, err := net.SplitHostPort(r.RequestURI)
	host, wrong := decide.Host(name)
	switch {
	case r.Method != http.MethodConnect:
		why = "only HTTPS is possible from the sandbox"
	case err != nil || port != "443":
		why = "only port 443 is possible from the sandbox"
	case wrong != nil:
		why = wrong.Error()
	default:
		return host, ""
	}
	return strconv.QuoteToASCII(r.Host[:min(len(r.Host), decide.MaxHost)]), why
}

// answer returns the answer about a host. At the first attempt it begins to ask, unless there is a reason why not.
func (n *Network) answer(host, why string) *Answer {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := slices.IndexFunc(n.answers, func(a *Answer) bool { return a.Host == host }); i >= 0 {
		return n.answers[i]
	}
	there, done := context.WithCancel(context.Background())
	a := &Answer{Host: host, Why: why, there: there}
	if len(n.answers) < maxHosts {
		n.answers = append(n.answers, a)
	} else {
		a.Why = fmt.Sprintf("the command has asked for %d hosts", maxHosts)
	}
	if a.Why != "" {
		done()
		return a
	}
	n.asking.Go(func() {
		defer done()
		n.open <- struct{}{}
		why := n.decide(n.ctx, host)
		<-n.open
		n.mu.Lock()
		defer n.mu.Unlock()
		a.Why, a.Decided = why, true
	})
	return a
}

// reach connects to a host of which the answer is there. It returns why it may not, or else why it cannot.
func (n *Network) reach(a *Answer) (up net.Conn, why string, err error) {
	n.mu.Lock()
	why = a.Why
	n.mu.Unlock()
	if why != "" {
		return nil, why, nil
	}
	up, why, err = n.proxy.connect(n.ctx, a.Host)
	n.mu.Lock()
	defer n.mu.Unlock()
	if why != "" {
		a.Why, a.Decided = why, false
	}
	a.Reached = a.Reached || up != nil
	return up, why, err
}

// say answers a request that is refused.
func say(c net.Conn, status int, words string) {
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %d codex-mcp: %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", status,
		plain.OneLine(words, 300))
}

// pass carries bytes in both directions, of which r holds the first of the command's.
func pass(c net.Conn, r *bufio.Reader, up net.Conn) {
	var sending sync.WaitGroup
	sending.Go(func() {
		first, _ := r.Peek(r.Buffered())
		_, _ = up.Write(first) // an error meets the rest, too
		carry(up, c)
	})
	carry(c, up)
	sending.Wait()
}

// carry carries the bytes of one direction, by the kernel if that can, and passes on their end. Who reads no more, or has
// no more to say, may be gone without a word.
func carry(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if half, is := to.(interface{ CloseWrite() error }); is {
		_ = half.CloseWrite()
	} else {
		_ = to.Close()
	}
	_ = to.SetReadDeadline(time.Now().Add(linger))
}
