package link

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Head says for whom a request is.
type Head struct {
	// User is whose worker the request is for. Sender is the principal that sent it: the
	// user. Scopes are those of the sender.
	User   string   `json:"user"`
	Sender string   `json:"sender"`
	Scopes []string `json:"scopes"`
	// Epoch is that of the user's lease, as the sender knows it.
	Epoch uint64 `json:"epoch"`

	// The client sets the fields below. Node is the id of the server, Clock its time, and Request is
	// random. A head without Request asks for the time.
	Node    string `json:"node"`
	Clock   clock  `json:"clock"`
	Request string `json:"request"`
	// Method and URL are of the HTTP request. URL is a path with a query.
	Method string `json:"method"`
	URL    string `json:"url"`
}

// The headers of the link. Both sides set them on what they send, so that neither clients nor workers can.
const (
	headHeader  = "Codex-Mcp-Link"       // the [Head] of a request
	whatHeader  = "Codex-Mcp-Link-What"  // of an answer: [refused], or empty if it is that of the handler
	clockHeader = "Codex-Mcp-Link-Clock" // the time of the server

	refused = "refused" // the request was not carried out, and the answer says why
)

var (
	// ErrAbsent means that the server cannot be reached. The request was not carried out.
	ErrAbsent = errors.New("the node cannot be reached")
	// ErrRefused means that the server did not carry out the request. The error that wraps it
	// has the reason.
	ErrRefused = errors.New("the node refused the request")
	// ErrLost means that there is no answer. The server may have carried out the request.
	ErrLost = errors.New("the node did not answer")
)

const (
	// maxHead bounds the headers of a request and of an answer, in bytes.
	maxHead = 256 << 10
	// maxReason bounds the reason of a refusal, in bytes.
	maxReason = 256
	// maxExchanges bounds the open exchanges of a server.
	maxExchanges = 16384
	// maxStreams bounds those of a connection. A client makes more connections when it needs them.
	maxStreams = 1000
	// window bounds what a side keeps of an exchange whose reader is slow, in bytes.
	window = 512 << 10
	// lasts is how long after it has told its time a server begins a request with that time. It is shorter
	// than a side takes to notice that the other one is lost, so that nobody waits for it then.
	lasts = 4 * time.Second
)

// A side that hears nothing asks the other one, which is lost if it does not answer.
const (
	askAfter  = 2 * time.Second
	lostAfter = 3 * time.Second
)

// http2 returns how both sides use HTTP/2.
func http2() (*http.Protocols, *http.HTTP2Config) {
	p := new(http.Protocols)
	p.SetHTTP2(true)
	return p, &http.HTTP2Config{
		MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerStream: window, MaxReceiveBufferPerConnection: maxStreams * window, // slow readers leave room for others
		SendPingTimeout: askAfter, PingTimeout: lostAfter, WriteByteTimeout: askAfter + lostAfter,
	}
}

// notPassed are headers that are about the client's connection, or that nodes do not need.
var notPassed = []string{
	"Authorization", "Connection", "Content-Length", "Cookie", "Expect", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	headHeader, whatHeader, clockHeader,
}

// passed returns the headers of a request that go to the node.
func passed(r *http.Request) (http.Header, error) {
	drop := notPassed
	for _, list := range r.Header["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			drop = append(slices.Clip(drop), http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	out, size := http.Header{}, len(r.RequestURI)
	for name, values := range r.Header {
		if slices.Contains(drop, name) {
			continue
		}
		out[name] = values // nobody changes them
		for _, value := range values {
			size += len(name) + len(value)
		}
	}
	if size > maxHead {
		return nil, fmt.Errorf("%w: its headers are too long", ErrRefused)
	}
	return out, nil
}

// clock is the time of a server in nanoseconds: since its start, and of the machine. The second one goes on while the machine is
// suspended. If somebody sets it, only the requests that are under way are late.
type clock struct {
	Ran  int64 `json:"ran"`
	Wall int64 `json:"wall"`
}

func newClock(started time.Time) clock {
	return clock{int64(time.Since(started)), time.Now().UnixNano()}
}

// late reports whether it is too late for a request with an older time.
func (c clock) late(then clock) bool {
	outside := func(age int64) bool { return age < 0 || age > int64(lasts) }
	return outside(c.Ran-then.Ran) || outside(c.Wall-then.Wall)
}

// recent remembers ids for as long as requests with them are not late.
type recent struct {
	mu       sync.Mutex
	now, old map[string]bool
	since    time.Time // of now
}

// add remembers an id. It fails if it does already.
func (s *recent) add(id string, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || at.Sub(s.since) > lasts {
		s.old, s.now, s.since = s.now, map[string]bool{}, at
	}
	if s.now[id] || s.old[id] {
		return false
	}
	s.now[id] = true
	return true
}
