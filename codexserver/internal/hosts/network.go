package hosts

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	maxHead  = 16 << 10         // of a request
	headTime = 30 * time.Second // for the rest of it, once it has begun
	maxOpen  = 8                // hosts that wait for an answer
	maxHosts = 100              // that a command may ask for
	linger   = time.Minute      // for the rest of an answer when the command writes no more
)

// Decide decides whether the command may reach a host. It returns "" or, in words for the command, why not. It must
// return when ctx ends, which is when the command has ended.
type Decide func(ctx context.Context, host string) (refusal string)

// Refusal is a host that a command did not reach because it was not allowed, and Why.
type Refusal struct {
	Host, Why string
	Decided   bool // by a [Decide]
}

// Network is the network of one command. It is safe for concurrent use.
type Network struct {
	proxy  *Proxy
	decide Decide
	ctx    context.Context
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu      sync.Mutex
	answers map[string]*answer // by host
	open    int                // answers that are awaited
	used    []string
	refused []Refusal
}

// answer is what was decided about a host. The refusal, if it says why, counts when done is closed.
type answer struct {
	done chan struct{}
	Refusal
}

// Network begins the network of a command.
func (p *Proxy) Network(ctx context.Context, decide Decide) *Network {
	ctx, cancel := context.WithCancel(ctx)
	return &Network{proxy: p, decide: decide, ctx: ctx, cancel: cancel, answers: map[string]*answer{}}
}

// Close withdraws what is asked, and waits for it. It returns the hosts that the command has reached, and those that it
// has not because they were not allowed, each once and in the order of the first attempt. Nothing is served any more.
func (n *Network) Close() (used []string, refused []Refusal) {
	n.cancel()
	n.asking.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.used, n.refused
}

// Serve serves a socket of the command, until it is closed, as it is when ctx ends.
func (n *Network) Serve(ctx context.Context, c net.Conn) {
	in := &io.LimitedReader{R: c, N: maxHead}
	r := bufio.NewReader(in)
	if _, err := r.Peek(1); err != nil { // without a limit: it may stay idle
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(headTime))
	request, err := http.ReadRequest(r)
	_ = c.SetReadDeadline(time.Time{})
	if err != nil {
		say(c, http.StatusBadRequest, "not a request to an HTTP proxy")
		return
	}
	host, err := target(request)
	if err != nil {
		n.refuse(c, Refusal{Host: host, Why: err.Error()})
		return
	}
	a := n.answer(host)
	if !await(ctx, a, c, r) {
		return
	}
	if a.Why != "" {
		n.refuse(c, a.Refusal)
		return
	}
	up, refusal, err := n.proxy.connect(ctx, host)
	switch {
	case refusal != "":
		n.refuse(c, Refusal{Host: host, Why: refusal})
		return
	case err != nil:
		say(c, http.StatusBadGateway, host+" cannot be reached: "+err.Error())
		return
	}
	defer up.Close()
	defer context.AfterFunc(ctx, func() { _ = up.Close() })()
	n.mu.Lock()
	if !slices.Contains(n.used, host) {
		n.used = append(n.used, host)
	}
	n.mu.Unlock()
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	in.N = math.MaxInt64
	pass(c, r, up)
}

// say answers a request that is refused.
func say(c net.Conn, status int, words string) {
	_ = c.SetWriteDeadline(time.Now().Add(headTime)) // the command may not read
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %d codex-mcp: %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", status, phrase(words))
}

// refuse answers a request whose host is refused, and records that once.
func (n *Network) refuse(c net.Conn, r Refusal) {
	n.mu.Lock()
	if len(n.refused) < maxHosts && !slices.ContainsFunc(n.refused, func(other Refusal) bool { return other.Host == r.Host }) {
		n.refused = append(n.refused, r)
	}
	n.mu.Unlock()
	say(c, http.StatusForbidden, r.Host+" was refused: "+r.Why)
}

// await waits for an answer, while the program that needs it waits too. It is false when that has given up.
func await(ctx context.Context, a *answer, c net.Conn, r *bufio.Reader) bool {
	left := make(chan error, 1)
	go func() { // which the end of the socket or a deadline ends
		_, err := r.Peek(r.Buffered() + 1)
		left <- err
	}()
	select {
	case <-a.done:
		_ = c.SetReadDeadline(time.Unix(1, 0))
		<-left
		_ = c.SetReadDeadline(time.Time{})
		return true
	case err := <-left:
		if err != nil && err != bufio.ErrBufferFull {
			return false
		}
	}
	select { // it talks before the answer
	case <-a.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// answer returns the answer about a host, and begins to ask for it at the first attempt.
func (n *Network) answer(host string) *answer {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.answers[host]; a != nil {
		return a
	}
	a := &answer{make(chan struct{}), Refusal{Host: host}}
	switch {
	case n.ctx.Err() != nil:
		a.Why = "the command has ended"
	case n.open == maxOpen:
		a.Why = fmt.Sprintf("%d other hosts wait for an answer", maxOpen)
	case len(n.answers) == maxHosts:
		a.Why = fmt.Sprintf("the command has asked for %d hosts", maxHosts)
	}
	if a.Why != "" { // which another attempt may not meet
		close(a.done)
		return a
	}
	n.answers[host] = a
	n.open++
	n.asking.Go(func() {
		why := n.decide(n.ctx, host)
		n.mu.Lock()
		defer n.mu.Unlock()
		a.Why, a.Decided = why, true
		n.open--
		close(a.done)
	})
	return a
}

// pass carries bytes in both directions, of which r holds the first of the command's.
func pass(c net.Conn, r *bufio.Reader, up net.Conn) {
	var sending sync.WaitGroup
	sending.Go(func() {
		first, _ := r.Peek(r.Buffered())
		_, err := up.Write(first)
		if err == nil {
			_, err = io.Copy(up, c) // the kernel carries it
		}
		if half, is := up.(interface{ CloseWrite() error }); is && err == nil {
			_ = half.CloseWrite()
			_ = up.SetReadDeadline(time.Now().Add(linger)) // the command may be gone
			return
		}
		_ = up.Close()
	})
	if _, err := io.Copy(c, up); err != nil {
		_ = c.Close()
	} else if half, is := c.(interface{ CloseWrite() error }); is {
		_ = half.CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(linger)) // it may have more to send, and nobody who reads it
	}
	sending.Wait()
}
