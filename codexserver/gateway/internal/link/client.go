package link

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
)

// Options configure a [Client] or a [Server].
type Options struct {
	// Heartbeat is the longest time without a frame. Both sides must have the same.
	// Default: [DefaultHeartbeat].
	Heartbeat time.Duration
}

func (o *Options) heartbeat() time.Duration {
	if o == nil || o.Heartbeat <= 0 {
		return DefaultHeartbeat
	}
	return o.Heartbeat
}

// maxExchanges bounds the open exchanges of a client or a server.
const maxExchanges = 16384

var (
	// ErrAbsent means that no server has the id. The request was not carried out.
	ErrAbsent = errors.New("no server has this id")
	// ErrRefused means that the server did not carry out the request. The error that wraps it
	// has the reason.
	ErrRefused = errors.New("the server refused the request")
)

// Client sends requests to servers. It is safe for concurrent use.
type Client struct {
	conn *nats.Conn
	id   string
	sub  *nats.Subscription
	ends ends

	stop    context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex // requests are published in the order of their numbers
	number uint64
}

// NewClient returns a client on a connection. The caller must close it before the connection.
func NewClient(conn *nats.Conn, o *Options) (*Client, error) {
	if err := checkPayload(conn); err != nil {
		return nil, err
	}
	c := &Client{conn: conn, id: rand.Text()}
	var err error
	if c.sub, err = conn.Subscribe(clientSubject(c.id, "*"), c.receive); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.running.Go(func() { c.ends.beat(ctx, o.heartbeat()) })
	return c, nil
}

// checkPayload fails if the messages of the NATS server are too short for a head.
func checkPayload(conn *nats.Conn) error {
	if most := conn.MaxPayload(); most < 2*maxHead {
		return fmt.Errorf("NATS: max_payload is %d bytes; want at least %d", most, 2*maxHead)
	}
	return nil
}

// Close ends all exchanges of the client.
func (c *Client) Close() error {
	c.stop()
	err := c.sub.Unsubscribe()
	c.ends.close()
	c.running.Wait()
	return err
}

// receive handles a frame of a server. A message for an unknown exchange is late or forged.
func (c *Client) receive(m *nats.Msg) {
	e := c.ends.find(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	if e == nil {
		return
	}
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" { // from the NATS server: nobody has received the head
		e.fail(ErrAbsent)
		return
	}
	e.receive(m.Data, time.Now())
}

// secretHeaders identify the client of the HTTP request. Servers do not need them.
var secretHeaders = []string{"Authorization", "Cookie", "Proxy-Authorization"}

// Do sends a request to the server with an id, and returns the answer. It waits for the answer
// until ctx ends. head has the fields that the client does not set. The caller must close the
// body of the answer. Until then nobody else may use the body of the request.
//
// An error that is not [ErrAbsent] or [ErrRefused] leaves open whether the request was carried
// out.
func (c *Client) Do(ctx context.Context, server string, head Head, r *http.Request) (*http.Response, error) {
	if !validID(server) {
		return nil, fmt.Errorf("%w: %q is not the id of a server", ErrAbsent, server)
	}
	exchange := rand.Text()
	to := serverSubject(server, exchange)
	e := newEnd(exchange, time.Now(), func(b []byte) error { return c.conn.Publish(to, b) })
	e.client = true
	if !c.ends.add(e, maxExchanges) {
		return nil, fmt.Errorf("%w: too many are open", ErrRefused)
	}
	x := &exchangeBody{client: c, end: e, ctx: ctx, uploaded: make(chan struct{})}
	if err := c.begin(e, to, head, r); err != nil {
		c.ends.remove(e)
		return nil, err
	}
	go x.upload(r.Body)
	answer, err := x.answer(r)
	if err != nil {
		_ = x.Close()
		return nil, err
	}
	return answer, nil
}

// begin sends the head of a request.
func (c *Client) begin(e *end, to string, head Head, r *http.Request) error {
	head.Client, head.Method, head.URL, head.Length = c.id, r.Method, r.URL.RequestURI(), r.ContentLength
	head.Header = r.Header.Clone()
	for name := range head.Header {
		if slices.Contains(secretHeaders, name) {
			delete(head.Header, name)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	head.Number = c.number
	payload, err := json.Marshal(head)
	if err == nil && len(payload) > maxHead {
		err = fmt.Errorf("%w: its headers are too long", ErrRefused)
	}
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	b := frame{kindHead, e.sent, payload}.append(make([]byte, 0, frameHeader+len(payload)))
	e.sent++
	if !c.conn.IsConnected() { // the connection would keep the request, and send it after its client has an error
		return fmt.Errorf("%w: the connection to NATS is broken", ErrRefused)
	}
	// With a reply subject, the NATS server reports that nobody receives the message.
	return c.conn.PublishRequest(to, clientSubject(c.id, e.exchange), b)
}

// exchangeBody is the body of an answer.
type exchangeBody struct {
	client   *Client
	end      *end
	ctx      context.Context
	uploaded chan struct{} // closed when the body of the request is no longer used
}

// upload sends the body of the request.
func (x *exchangeBody) upload(body io.Reader) {
	defer close(x.uploaded)
	reason := ""
	if body != nil {
		b := make([]byte, maxChunk)
		for {
			n, err := body.Read(b)
			if _, failed := x.end.writeBody(x.ctx, b[:n]); failed != nil {
				return // the exchange has ended
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				reason = "it could not be read"
				break
			}
		}
	}
	if x.end.failure() == nil {
		_ = x.end.writeEnd(reason) // an error ends the exchange by the silence
	}
}

// answer returns the answer when its head has arrived.
func (x *exchangeBody) answer(r *http.Request) (*http.Response, error) {
	f, err := x.end.next(x.ctx)
	if err != nil {
		return nil, err
	}
	switch f.kind {
	case kindRefuse:
		return nil, fmt.Errorf("%w: %s", ErrRefused, f.payload)
	case kindEnd:
		return nil, fmt.Errorf("%w: it ended without an answer: %s", ErrLost, f.payload)
	case kindHead:
	default:
		return nil, errFrame
	}
	var head answerHead
	if err := decodeHead(f.payload, &head); err != nil {
		return nil, fmt.Errorf("the head of the answer: %w", err)
	}
	if head.Status < 200 || head.Status > 599 {
		return nil, fmt.Errorf("the head of the answer has the status %d", head.Status)
	}
	if head.Header == nil {
		head.Header = http.Header{}
	}
	return &http.Response{StatusCode: head.Status, Header: head.Header, Body: x, ContentLength: -1, Request: r}, nil
}

// Read implements [io.Reader].
func (x *exchangeBody) Read(p []byte) (int, error) { return x.end.read(x.ctx, p) }

// Close implements [io.Closer]. If the answer has not ended, it cancels the request.
func (x *exchangeBody) Close() error {
	if x.end.ended == nil {
		_ = x.end.write(kindCancel, nil) // else the silence cancels
	}
	x.client.ends.remove(x.end)
	x.end.fail(ErrClosed)
	<-x.uploaded
	return nil
}
