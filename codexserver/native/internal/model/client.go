package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/internal/text"
)

// maxErrorBody is how many bytes are read of an answer that is not a stream.
const maxErrorBody = 8 << 10

// Client sends requests to one provider. It is safe for concurrent use.
type Client struct {
	// Provider is the provider, and Name its name in the configuration: only to it goes back what it alone can read.
	Provider config.Provider
	Name     string
	// HTTP sends the requests. Its timeout must be 0. Redirects to another host are not
	// followed.
	HTTP *http.Client
	// Getenv returns environment variables, for keys.
	Getenv func(string) string
	// APIKey returns the key for providers that require OpenAI's, or "".
	APIKey func() (string, error)
	// PrintKey runs the program that prints the key. It is nil for a provider without one.
	PrintKey func(context.Context) (string, error)
	// UserAgent and Originator name the program.
	UserAgent, Originator string
	// MaxBytes is the size of the largest response.
	MaxBytes int64
	// Room is what answers take room of, nil for no bound of all together.
	Room *slots.Limit
	// MaxWait is how long the provider may have a request wait before another attempt. One that should
	// wait longer is not worth it. Default: as long as the provider asks.
	MaxWait time.Duration

	forms    sync.Map    // the [form] of requests that the provider takes, by the model
	answered atomic.Bool // the provider has answered a request
	printing sync.Mutex  // while the program of the key runs
	printed  atomic.Pointer[printedKey]
}

// Ready returns why no request can be sent, such as a missing key, or nil. It sends nothing.
func (c *Client) Ready() error {
	_, err := c.key()
	return err
}

// Stream sends a request once, or in each form that the provider may take, and calls emit with the
// events of the response, on the caller's goroutine. It returns the whole response, an error of this
// package, or the context's cause. [Client.Again] says whether another attempt is worth it.
func (c *Client) Stream(ctx context.Context, req *Request, emit func(protocol.EventMsg)) (*Response, error) {
	known, _ := c.forms.Load(req.Model)
	f, _ := known.(form)
	if c.Provider.WireAPI != config.WireResponses {
		f.without |= rolesInARow | extras | outputsApart
	} else {
		f.without |= systemRole
	}
	for renewed := false; ; {
		if err := c.printKey(ctx, false); err != nil {
			return nil, err
		}
		resp, next, err := c.stream(ctx, f, req, emit)
		if said, refused := errors.AsType[*ProviderError](err); refused && said.Status == http.StatusUnauthorized &&
			c.PrintKey != nil && !renewed {
			renewed = true
			if c.printKey(ctx, true) == nil {
				continue
			}
		}
		if next == nil {
			if err == nil && !reflect.DeepEqual(known, f) {
				c.forms.Store(req.Model, f)
			}
			return resp, err
		}
		if next.has(images) && !f.has(images) {
			emit(protocol.BackgroundEvent{Message: "The model cannot take images: they were left out, with a remark " +
				"to the model."})
		}
		if left := next.tools[len(f.tools):]; len(left) > 0 {
			emit(protocol.BackgroundEvent{Message: "The model's provider refuses these tools, so the model does not " +
				"have them: " + strings.Join(left, ", ")})
		}
		f = *next
	}
}

// stream sends a request in a form. It returns another form that the provider may take if it refuses this one.
func (c *Client) stream(
	ctx context.Context, f form, req *Request, emit func(protocol.EventMsg),
) (out *Response, next *form, err error) {
	idle := time.Duration(orDefault(c.Provider.StreamIdleTimeoutMS, 300_000)) * time.Millisecond
	a := &attempt{client: c, form: f, wire: c.wire(f), req: req, report: emit, held: held{room: c.Room}}
	a.body = a.encode
	target, err := c.target(a.wire.path())
	if err != nil {
		return nil, nil, err
	}
	// The watch ends an attempt when the provider is silent, before or after the headers.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var now phase
	watch := time.AfterFunc(idle, func() { cancel(c.silence(&now, idle, target)) })
	defer watch.Stop()
	if !c.answered.Load() {
		early := time.AfterFunc(firstConnection, func() {
			if now.now.Load() == connecting {
				cancel(c.silence(&now, firstConnection, target))
			}
		})
		defer early.Stop()
	}
	defer func() {
		if err != nil && ctx.Err() != nil {
			next, err = nil, context.Cause(ctx)
		}
	}()
	resp, err := c.send(now.trace(ctx), target, a)
	watch.Stop()
	if err != nil {
		return nil, a.other, err
	}
	defer resp.Body.Close()
	now.now.Store(streaming)
	a.header = resp.Header
	a.next = newSSE(readFunc(func(b []byte) (n int, err error) {
		watch.Reset(idle)
		for n == 0 && err == nil { // nothing is silence
			n, err = resp.Body.Read(b)
		}
		watch.Stop() // the time in emit does not count as silence
		return n, err
	}), c.MaxBytes, a.held.take).next
	out, err = a.wire.read(a)
	if said, ok := errors.AsType[*ProviderError](err); ok {
		said.Words = shorten(c.redact(said.Words))
	}
	if err != nil {
		a.held.free()
		return nil, a.other, err
	}
	nameCalls(req.Items, out.Items)
	out.Free = a.held.free
	return out, nil, nil
}

// readFunc is a reader.
type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// body is a request's body. It drops what was sent: a response can take minutes.
type body struct{ left []byte }

func (b *body) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		b.left = nil
		return 0, io.EOF
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// send sends the request of an attempt once, or else one without a body. An answer with another status than 2xx
// becomes an error.
func (c *Client) send(ctx context.Context, target *url.URL, a *attempt) (*http.Response, error) {
	method, refused := http.MethodGet, c.refused
	if a != nil {
		method, refused = http.MethodPost, a.refused
	}
	hr, err := http.NewRequestWithContext(ctx, method, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	if a != nil {
		hr.GetBody = func() (io.ReadCloser, error) { // also where net/http repeats the request
			left, err := a.body()
			if err != nil {
				return nil, fmt.Errorf("request to the model: %w", err)
			}
			hr.ContentLength = int64(len(left))
			return io.NopCloser(&body{left}), nil
		}
		if hr.Body, err = hr.GetBody(); err != nil {
			return nil, err
		}
	}
	if err := c.setHeaders(hr.Header, a); err != nil {
		return nil, err
	}
	resp, err := staying(c.HTTP).Do(hr)
	if err != nil {
		return nil, c.connectErr(hr, err)
	}
	c.answered.Store(c.answered.Load() || a != nil)
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a part is enough
	return nil, refused(resp.StatusCode, resp.Header, text)
}

// The paths of the two APIs below base_url.
const (
	chatPath      = "/chat/completions"
	responsesPath = "/responses"
)

// target returns the address of a path below base_url, which may also be the whole address of an API.
func (c *Client) target(path string) (*url.URL, error) {
	if c.Provider.BaseURL == "" {
		return nil, errors.New("the provider has no base_url")
	}
	u, err := url.Parse(c.Provider.BaseURL)
	if err != nil {
		if quoting, ok := errors.AsType[*url.Error](err); ok { // it may have a password
			err = quoting.Err
		}
		return nil, fmt.Errorf("base_url: %w", err)
	}
	u = u.JoinPath()                                             // without a slash at its end
	for _, endpoint := range []string{chatPath, responsesPath} { // pasted from a page
		if base, ok := strings.CutSuffix(strings.TrimSuffix(u.EscapedPath(), "/"), endpoint); ok {
			u.Path, _ = url.PathUnescape(base) // it was escaped
			u.RawPath = base
		}
	}
	u = u.JoinPath(path)
	var query []string // as it is written: a gateway may read it in its own way
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if _, replaced := c.Provider.QueryParams[name]; !replaced && pair != "" {
			query = append(query, pair)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Provider.QueryParams)) {
		query = append(query, url.QueryEscape(name)+"="+url.QueryEscape(c.Provider.QueryParams[name]))
	}
	u.RawQuery = strings.Join(query, "&")
	return u, nil
}

// shown returns a URL without the parts that may be secret.
func shown(u *url.URL) string {
	own := *u
	own.RawQuery, own.Fragment, own.RawFragment = "", "", ""
	return own.Redacted()
}

// ShowURL returns a URL without the parts that may be secret, and nothing of one that cannot be parsed.
func ShowURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "an address that cannot be read"
	}
	return shown(u)
}

func (c *Client) setHeaders(h http.Header, a *attempt) error {
	h.Set("Accept", "application/json")
	h.Set("User-Agent", c.UserAgent)
	h.Set("Originator", c.Originator)
	if a != nil {
		if !a.form.has(noStream) {
			h.Set("Accept", "text/event-stream")
		}
		h.Set("Content-Type", "application/json")
		a.wire.headers(h, a.req)
		// is not sent: net/http repeats what it sent on a kept connection that the server has closed
		h["Idempotency-Key"] = nil
	}
	key, err := c.key()
	if err != nil {
		return err
	}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	for k, v := range c.Provider.HTTPHeaders {
		h.Set(k, strings.TrimSpace(v))
	}
	for k, name := range c.Provider.EnvHTTPHeaders {
		if v := strings.TrimSpace(c.Getenv(name)); v != "" {
			h.Set(k, v)
		}
	}
	return nil
}

// key returns the provider's key, or "" if the provider does not need one.
func (c *Client) key() (string, error) {
	p := c.Provider
	key := cmp.Or(strings.TrimSpace(c.Getenv(p.EnvKey)), strings.TrimSpace(p.BearerToken), c.printedKey().key)
	switch {
	case key != "":
	case p.EnvKey != "":
		return "", errors.New(strings.TrimSpace("Missing environment variable: `" + p.EnvKey + "`. " +
			p.EnvKeyInstructions))
	case p.Auth == nil && p.RequiresOpenAIAuth && c.APIKey != nil:
		return c.APIKey()
	}
	return key, nil
}

func (c *Client) hint(status int) string {
	if status != http.StatusUnauthorized {
		return ""
	}
	switch p := c.Provider; {
	case p.EnvKey != "":
		return "correct the key in the environment variable " + p.EnvKey
	case p.BearerToken != "":
		return "correct the provider's experimental_bearer_token"
	case p.Auth != nil:
		return "the key is what the provider's auth.command prints"
	case p.RequiresOpenAIAuth:
		return "correct OPENAI_API_KEY, or sign in again"
	case len(p.EnvHTTPHeaders) > 0:
		return "correct the key in " + strings.Join(slices.Sorted(maps.Values(p.EnvHTTPHeaders)), " or ") +
			", which the provider's env_http_headers name"
	case len(p.HTTPHeaders) > 0:
		return "correct the key in the provider's http_headers"
	default:
		return "the provider requires a key: set the provider's env_key to the name of an environment variable with " +
			"the key"
	}
}

// redact removes what the provider alone may know from a text of the provider: its keys, and the
// values of its headers and of its query.
func (c *Client) redact(s string) string {
	p, printed := c.Provider, c.printedKey()
	values := []string{printed.key, printed.last, c.Getenv(p.EnvKey), p.BearerToken}
	values = slices.AppendSeq(values, maps.Values(p.HTTPHeaders))
	values = slices.AppendSeq(values, maps.Values(p.QueryParams))
	for _, name := range p.EnvHTTPHeaders {
		values = append(values, c.Getenv(name))
	}
	if p.RequiresOpenAIAuth && c.APIKey != nil {
		key, _ := c.APIKey()
		values = append(values, key)
	}
	return text.NewSecrets(values...).Hide(s)
}

func orDefault(p *int64, otherwise int64) int64 {
	if p == nil || *p < 0 {
		return otherwise
	}
	return *p
}

// wire returns the provider's API, with requests in a form.
func (c *Client) wire(f form) wire {
	if c.Provider.WireAPI == config.WireResponses {
		return responsesWire{f}
	}
	return chatWire{f, c.Name}
}

// wire is one of the two APIs.
type wire interface {
	path() string
	headers(http.Header, *Request)
	body(*Request) ([]byte, error)
	read(*attempt) (*Response, error)
}
