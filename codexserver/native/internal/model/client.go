package model

import (
	"bytes"
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/internal/webaddr"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxErrorBody is how many bytes are read of an answer that is not a stream.
const maxErrorBody = 8 << 10

// Client sends requests to one provider. It is safe for concurrent use.
type Client struct {
	// Provider is the provider.
	Provider config.Provider
	// HTTP sends the requests. Its timeout must be 0. Redirects to another host are not
	// followed.
	HTTP *http.Client
	// Getenv returns environment variables, for keys.
	Getenv func(string) string
	// APIKey returns the key for providers that require OpenAI's, or "".
	APIKey func() (string, error)
	// UserAgent and Originator name the program.
	UserAgent, Originator string
	// MaxBytes is the size of the largest response, MaxToolCalls how many calls it may
	// have.
	MaxBytes     int64
	MaxToolCalls int
	// MaxWait is how long the provider may have a request wait before another attempt. A request that
	// should wait longer fails. Default: as long as the provider asks.
	MaxWait time.Duration

	strict   atomic.Bool            // the provider refuses members that the oldest Chat API did not have
	bare     atomic.Bool            // the provider refuses messages with their reasoning
	unsigned atomic.Bool            // the provider refuses calls with the signs of another one
	blind    atomic.Pointer[string] // the model that takes no images
	answered atomic.Bool            // the provider has answered a request
}

// Ready returns why no request can be sent, such as a missing key, or nil. It sends nothing.
func (c *Client) Ready() error {
	_, err := c.key()
	return err
}

// Stream sends a request and calls emit with the events of the response, on the caller's
// goroutine. It returns the whole response, an error of this package, or the context's
// cause.
func (c *Client) Stream(ctx context.Context, req *Request, emit func(Event)) (*Response, error) {
	if blind := c.blind.Load(); blind != nil && *blind == req.Model && hasImages(req.Items) {
		req = withoutImages(req)
	}
	resp, err := c.stream(ctx, req, emit)
	if errors.Is(err, errImages) {
		name := req.Model
		c.blind.Store(&name)
		emit(Event{Type: ImagesLeftOut})
		return c.Stream(ctx, req, emit)
	}
	var refused *StatusError
	if errors.As(err, &refused) &&
		(strings.Contains(refused.Body, "stream_options") && c.strict.CompareAndSwap(false, true) ||
			strings.Contains(refused.Body, "reasoning") && reasoningMember(req.Items) != "" && c.bare.CompareAndSwap(false, true) ||
			refusesSigns(refused.Body) && hasSigns(req.Items) && c.unsigned.CompareAndSwap(false, true)) {
		return c.stream(ctx, req, emit)
	}
	return resp, err
}

func (c *Client) stream(ctx context.Context, req *Request, emit func(Event)) (*Response, error) {
	p := c.Provider
	idle := time.Duration(value(p.StreamIdleTimeoutMS, 300_000)) * time.Millisecond
	var wire wire = chatWire{strict: c.strict.Load(), bare: c.bare.Load(), unsigned: c.unsigned.Load()}
	if p.WireAPI == config.WireResponses {
		wire = responsesWire{}
	}
	body, err := wire.body(req)
	if err != nil {
		return nil, fmt.Errorf("request to the model: %w", err)
	}
	// The watch ends an attempt when the provider is silent, before or after the headers.
	attempt, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var now phase
	watch := time.AfterFunc(idle, func() { cancel(&silenceError{now.silence(idle)}) })
	defer watch.Stop()

	resp, err := c.send(now.trace(attempt), watch, idle, wire, req, body, emit)
	if err != nil {
		return nil, c.ended(ctx, attempt, wire, err)
	}
	defer resp.Body.Close()
	now.now.Store(streaming)
	events := newSSE(readFunc(func(b []byte) (n int, err error) {
		watch.Reset(idle)
		for n == 0 && err == nil { // nothing is silence
			n, err = resp.Body.Read(b)
		}
		watch.Stop() // the time in emit does not count as silence
		if n > 0 {   // comments keep a stream alive, too
			emit(Event{Type: Alive})
		}
		return n, err
	}), c.MaxBytes)
	out, err := wire.read(&stream{next: events.next, emit: emit, hide: c.redact, header: resp.Header, maxCalls: c.MaxToolCalls})
	if err != nil {
		return nil, c.ended(ctx, attempt, wire, c.redactErr(err))
	}
	return out, nil
}

// readFunc is a reader.
type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// silenceError is the cause of an attempt that the watch ended.
type silenceError struct{ error }

// ended returns why an attempt ended: the context's cause, the watch's error, or err.
func (c *Client) ended(ctx, attempt context.Context, w wire, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var silent *silenceError
	if !errors.As(context.Cause(attempt), &silent) {
		return err
	}
	var connect *ConnectError
	if errors.As(silent.error, &connect) {
		if target, err := c.target(w.path()); err == nil {
			connect.URL = shown(target)
		}
	}
	return silent.error
}

// send posts the request until it is accepted, fails for good, or has no retries left. The
// watch starts again with each attempt, and does not run between attempts, which emit learns of.
func (c *Client) send(ctx context.Context, watch *time.Timer, idle time.Duration, wire wire, req *Request, body []byte, emit func(Event)) (*http.Response, error) {
	retries := int(value(c.Provider.RequestMaxRetries, 4))
	for attempt := 0; ; attempt++ {
		watch.Reset(idle)
		resp, err := c.post(ctx, wire, req, body)
		watch.Stop()
		if err == nil {
			return resp, nil
		}
		wait, ok := Pause(err, attempt)
		if !ok || attempt >= retries || c.TooLong(err) {
			return nil, err
		}
		why := err.Error()
		if refused, ok := errors.AsType[*RetryLimitError](err); ok { // the limit is not reached yet
			why = "the provider answered " + refused.answer()
		}
		emit(Event{Type: Waiting, Text: why, Wait: wait})
		if err := Wait(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// TooLong reports whether the provider that answered with err asks to wait longer than it may.
func (c *Client) TooLong(err error) bool {
	after, ok := Elsewhere(err)
	return ok && c.MaxWait > 0 && after > c.MaxWait
}

// post sends the request once. An answer that is not a stream becomes an error.
func (c *Client) post(ctx context.Context, wire wire, req *Request, body []byte) (*http.Response, error) {
	target, err := c.target(wire.path())
	if err != nil {
		return nil, err
	}
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	if err := c.setHeaders(hr.Header, wire, req); err != nil {
		return nil, err
	}
	resp, err := staying(c.HTTP).Do(hr)
	if err != nil {
		if !c.answered.Load() && errors.Is(err, syscall.ECONNREFUSED) && webaddr.Loopback(target.Hostname()) {
			return nil, &AbsentError{URL: shown(target)}
		}
		return nil, connectErr(target, err)
	}
	c.answered.Store(true)
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a part is enough
	if refusesImages(resp.StatusCode, string(text)) && hasImages(req.Items) {
		return nil, errImages
	}
	return nil, c.statusError(resp, text)
}

// connectErr returns the error for a request without an answer, or with a redirect.
func connectErr(target *url.URL, err error) error {
	var elsewhere *RedirectError
	if errors.As(err, &elsewhere) {
		return elsewhere
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return &ConnectError{URL: shown(target), Err: err}
}

func (c *Client) target(path string) (*url.URL, error) {
	if c.Provider.BaseURL == "" {
		return nil, errors.New("the provider has no base_url")
	}
	u, err := url.Parse(strings.TrimRight(c.Provider.BaseURL, "/") + path)
	if err != nil {
		if quoting, ok := errors.AsType[*url.Error](err); ok { // it may have a password
			err = quoting.Err
		}
		return nil, fmt.Errorf("base_url: %w", err)
	}
	q := u.Query()
	for k, v := range c.Provider.QueryParams {
		q.Set(k, v)
	}
	u.RawQuery = q.Encode()
	return u, nil
}

// shown returns a URL without the parts that may be secret.
func shown(u *url.URL) string {
	u.RawQuery, u.Fragment, u.RawFragment = "", "", ""
	return u.Redacted()
}

// ShowURL returns a URL without the parts that may be secret, and nothing of one that cannot be parsed.
func ShowURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "an address that cannot be read"
	}
	return shown(u)
}

func (c *Client) setHeaders(h http.Header, wire wire, req *Request) error {
	h.Set("Accept", "text/event-stream")
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", c.UserAgent)
	h.Set("Originator", c.Originator)
	wire.headers(h, req)
	key, err := c.key()
	if err != nil {
		return err
	}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	for k, v := range c.Provider.HTTPHeaders {
		h.Set(k, v)
	}
	for k, name := range c.Provider.EnvHTTPHeaders {
		if v := c.Getenv(name); strings.TrimSpace(v) != "" {
			h.Set(k, v)
		}
	}
	return nil
}

// key returns the provider's key, or "" if the provider does not need one.
func (c *Client) key() (string, error) {
	p := c.Provider
	if p.EnvKey != "" {
		if key := strings.TrimSpace(c.Getenv(p.EnvKey)); key != "" {
			return key, nil
		}
		return "", &MissingKeyError{Name: p.EnvKey, Instructions: p.EnvKeyInstructions}
	}
	if p.RequiresOpenAIAuth && c.APIKey != nil {
		return c.APIKey()
	}
	return "", nil
}

// MissingKeyError reports that a provider's key is not in the environment.
type MissingKeyError struct {
	Name, Instructions string
}

// Error implements error.
func (e *MissingKeyError) Error() string {
	text := "Missing environment variable: `" + e.Name + "`."
	if e.Instructions != "" {
		text += " " + e.Instructions
	}
	return text
}

// statusError converts an answer that is not a stream into an error.
func (c *Client) statusError(resp *http.Response, body []byte) error {
	var reply struct {
		Error struct {
			Type     string         `json:"type"`
			Code     jsontext.Value `json:"code"`
			Plan     string         `json:"plan_type"`
			ResetsIn int64          `json:"resets_in_seconds"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &reply, lenient) // many providers have another format
	code := strings.Trim(string(reply.Error.Code), `"`)
	switch status := resp.StatusCode; {
	case reply.Error.Type == "usage_limit_reached":
		return &UsageLimitError{Plan: shorten(c.redact(reply.Error.Plan)), ResetsIn: time.Duration(reply.Error.ResetsIn) * time.Second}
	case isOverflow(resp.StatusCode, string(body)):
		return fmt.Errorf("%w: %s", ErrContextWindow, shorten(c.redact(wordsOf(body))))
	case reply.Error.Type == "insufficient_quota" || code == "insufficient_quota",
		status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
		return &StatusError{Code: status, Body: c.redact(strings.ToValidUTF8(strings.TrimSpace(string(body)), "\uFFFD")), Hint: c.hint(status)}
	default:
		message := wordsOf(body)
		return &RetryLimitError{Code: status, Message: shorten(c.redact(message)), After: cmp.Or(retryAfter(resp.Header), askedDelay(message))}
	}
}

func (c *Client) hint(status int) string {
	if status != http.StatusUnauthorized {
		return ""
	}
	switch p := c.Provider; {
	case p.EnvKey != "":
		return fmt.Sprintf("set the environment variable %s to a valid key", p.EnvKey)
	case p.RequiresOpenAIAuth:
		return "set the environment variable OPENAI_API_KEY or log in"
	default:
		return "the provider requires a key: set the provider's env_key to the name of an environment variable with the key"
	}
}

// redact removes what the provider alone may know from a text of the provider: its keys, and the
// values of its headers and of its query.
func (c *Client) redact(text string) string {
	p := c.Provider
	values := []string{c.Getenv(p.EnvKey)}
	values = slices.AppendSeq(values, maps.Values(p.HTTPHeaders))
	values = slices.AppendSeq(values, maps.Values(p.QueryParams))
	for _, name := range p.EnvHTTPHeaders {
		values = append(values, c.Getenv(name))
	}
	if p.RequiresOpenAIAuth && c.APIKey != nil {
		key, _ := c.APIKey()
		values = append(values, key)
	}
	return config.NewSecrets(values...).Hide(text)
}

func (c *Client) redactErr(err error) error {
	var s *StreamError
	if errors.As(err, &s) {
		return &StreamError{Reason: shorten(c.redact(s.Reason)), After: s.After, Busy: s.Busy}
	}
	return err
}

// retryAfter returns how long the provider asks to wait, in seconds or until a date, or 0.
func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if date, err := http.ParseTime(value); err == nil {
		return max(time.Until(date), 0)
	}
	s, err := strconv.ParseFloat(value, 64)
	if err != nil || !(s > 0) {
		return 0
	}
	return time.Duration(min(s, 1e6) * float64(time.Second))
}

// Wait waits for d. If ctx ends first it returns the cause.
func Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func value(p *int64, otherwise int64) int64 {
	if p == nil || *p < 0 {
		return otherwise
	}
	return *p
}

// lenient accepts JSON of providers that repeat members, or split a character between two
// events.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// stream is an incoming response.
type stream struct {
	next     func() ([]byte, error) // the data of the next event, io.EOF at the end
	emit     func(Event)
	hide     func(string) string // removes secrets from the provider's words
	header   http.Header
	maxCalls int
}

// wire is one of the two APIs.
type wire interface {
	path() string
	headers(http.Header, *Request)
	body(*Request) ([]byte, error)
	read(*stream) (*Response, error)
}

// rawSchema returns a tool's parameters, by default the schema of an empty object.
func rawSchema(p stdjson.RawMessage) jsontext.Value {
	if len(p) == 0 {
		return jsontext.Value(`{"type":"object","properties":{}}`)
	}
	return jsontext.Value(p)
}
