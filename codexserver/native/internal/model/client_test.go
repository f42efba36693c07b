package model_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// answers is a provider that sends its answers in order, and then repeats the last one.
type answers struct {
	all      []answer
	requests []*http.Request
	bodies   []string
	times    []time.Time
	refuse   func(body string) *answer // nil answers
}

type answer struct {
	status int // 200 when it is 0
	header http.Header
	body   string
	hang   bool          // after the body, until the request ends
	slow   time.Duration // before each line of the body
	mute   bool          // it never connects
	err    error
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body) // of a test
	}
	next := a.all[min(len(a.requests), len(a.all)-1)]
	if a.refuse != nil {
		if refused := a.refuse(string(body)); refused != nil {
			next = *refused
		}
	}
	a.requests, a.bodies, a.times = append(a.requests, r), append(a.bodies, string(body)), append(a.times, time.Now())
	if next.mute {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if next.err != nil {
		return nil, next.err
	}
	if next.status == 0 {
		next.status = 200
	}
	if next.header == nil {
		next.header = http.Header{}
	}
	var out io.Reader = strings.NewReader(next.body)
	if next.slow > 0 {
		out = &slowReader{time.Tick(next.slow), strings.SplitAfter(next.body, "\n"), r.Context()}
	}
	if next.hang {
		out = io.MultiReader(out, stopReader{r.Context()})
	}
	return &http.Response{StatusCode: next.status, Header: next.header, Body: io.NopCloser(out), Request: r}, nil
}

// slowReader reads a line at each tick.
type slowReader struct {
	tick  <-chan time.Time
	lines []string
	ctx   context.Context
}

func (s *slowReader) Read(b []byte) (int, error) {
	if len(s.lines) == 0 {
		return 0, io.EOF
	}
	select {
	case <-s.tick:
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	n := copy(b, s.lines[0])
	s.lines = s.lines[1:]
	return n, nil
}

type stopReader struct{ ctx context.Context }

func (u stopReader) Read([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, u.ctx.Err()
}

func client(a http.RoundTripper, p config.Provider) *model.Client {
	if p.BaseURL == "" {
		p.BaseURL = "http://provider.test/v1"
	}
	env := map[string]string{"THE_KEY": "key-1234567890", "THE_HEADER": " header-1234567890\n"}
	return &model.Client{
		Provider: p, HTTP: &http.Client{Transport: a}, Getenv: func(n string) string { return env[n] },
		UserAgent: "agent", Originator: "tests", MaxBytes: 1 << 20,
	}
}

func send(t *testing.T, c *model.Client, req *model.Request) *model.Response {
	t.Helper()
	resp := must.Get(c.Stream(t.Context(), req, func(protocol.EventMsg) {}))(t)
	return resp
}

// persist requests a response as a turn does, which is the one layer that tries again.
func persist(ctx context.Context, c *model.Client, said func(wait time.Duration, say string)) (*model.Response, error) {
	began := time.Now()
	for n := 0; ; n++ {
		resp, err := c.Stream(ctx, &model.Request{}, func(protocol.EventMsg) {})
		wait, say, again := c.Again(err, n, began)
		if err == nil || !again {
			return resp, err
		}
		said(wait, say)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// retryable reports whether a request that failed with err is worth another attempt at all.
func retryable(err error) bool {
	_, _, again := new(model.Client).Again(err, 0, time.Now())
	return again
}

func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}

const chatDone = `{"choices":[{"delta":{},"finish_reason":"stop"}]}`

func call(id, name, arguments string) protocol.ResponseItem {
	return protocol.FunctionCallItem{Name: name, Arguments: arguments, CallID: id}
}

func text(s string) protocol.ResponseItem {
	return protocol.MessageItem{Role: "assistant", Content: []protocol.ContentItem{{Type: "output_text", Text: s}}}
}

// lost are the waits for a connection to a provider that has answered before.
var lost = []time.Duration{1600 * time.Millisecond, 6400 * time.Millisecond}

// TestRetries checks how often a request is sent, how long each wait is, and what is said meanwhile.
func TestRetries(t *testing.T) {
	two := int64(2)
	for _, tt := range []struct {
		name    string
		answers []answer
		waits   []time.Duration // each may be 10 percent longer or shorter
		err     string
	}{
		{"503 then 200", []answer{{status: 503}, {body: sse(chatDone)}}, []time.Duration{500 * time.Millisecond}, ""},
		{"always 408", []answer{{status: 408}}, refusals, "exceeded retry limit, last status: 408 Request Timeout"},
		{"always 429", []answer{{status: 429}}, refusals, "exceeded retry limit, last status: 429 Too Many Requests"},
		{"always 500", []answer{{status: 500}}, refusals, "exceeded retry limit, last status: 500 Internal Server Error"},
		{"always 502", []answer{{status: 502}}, refusals, "exceeded retry limit, last status: 502 Bad Gateway"},
		{"always 503", []answer{{status: 503}}, refusals, "exceeded retry limit, last status: 503 Service Unavailable"},
		{"always 529", []answer{{status: 529}}, refusals, "exceeded retry limit, last status: 529"},
		{"503 with a message", []answer{{status: 503, body: `{"error":{"message":"The model key-1234567890 is overloaded"}}`}}, refusals, "last status: 503 Service Unavailable: The model [redacted] is overloaded"},
		{"503 with an error string", []answer{{status: 503, body: `{"error":"later"}`}}, refusals, "Unavailable: later"},
		{"503 with text", []answer{{status: 503, body: "no upstream\n"}}, refusals, "Unavailable: no upstream"},
		{"429 with Retry-After", []answer{{status: 429, header: http.Header{"Retry-After": {"7"}}}, {body: sse(chatDone)}}, []time.Duration{7 * time.Second}, ""},
		{"429 with a date", []answer{{status: 429, header: http.Header{"Retry-After": {"Sat, 01 Jan 2000 00:00:07 GMT"}}}, {body: sse(chatDone)}}, []time.Duration{7 * time.Second}, ""},
		{"429 with a date of the past", []answer{{status: 429, header: http.Header{"Retry-After": {"Fri, 31 Dec 1999 00:00:07 GMT"}}}, {body: sse(chatDone)}}, []time.Duration{500 * time.Millisecond}, ""},
		{"429 with a far date", []answer{{status: 429, header: http.Header{"Retry-After": {"Sat, 01 Jan 2050 00:00:07 GMT"}}}, {body: sse(chatDone)}}, []time.Duration{2 * time.Minute}, ""},
		{"429 with a long Retry-After", []answer{{status: 429, header: http.Header{"Retry-After": {"121"}}}, {body: sse(chatDone)}}, []time.Duration{2 * time.Minute}, ""},
		{"429 with a time in its message", []answer{{status: 429, body: `{"error":{"message":"Rate limit reached. Please try again in 20s."}}`}, {body: sse(chatDone)}}, []time.Duration{20 * time.Second}, ""},
		{"429 that asks for less", []answer{{status: 429, header: http.Header{"Retry-After": {"0.001"}}}}, refusals, "429"},
		{"cut, then lost", []answer{{body: sse(`{"choices":[{"delta":{"content":"x"}}]}`)}, {err: errors.New("no route")}}, slices.Concat([]time.Duration{200 * time.Millisecond}, lost[:1]), "error sending request for url (http://provider.test/v1/chat/completions): no route"},
		{"503, lost, then 200", []answer{{status: 503}, {err: errors.New("no route")}, {body: sse(chatDone)}}, slices.Concat(refusals[:1], lost[:1]), ""},
		{"400", []answer{{status: 400, body: "bad"}}, nil, "unexpected status 400 Bad Request: bad"},
		{"401", []answer{{status: 401, body: "who?"}}, nil, "unexpected status 401 Unauthorized: who? (correct the key in the environment variable THE_KEY)"},
		{"401 in JSON", []answer{{status: 401, body: `{"error":{"message":"Incorrect API key provided: key-1234567890.","type":"invalid_request_error","code":"invalid_api_key"}}`}}, nil,
			"unexpected status 401 Unauthorized: Incorrect API key provided: [redacted]. (correct the key in the environment variable THE_KEY)"},
		{"404 in JSON", []answer{{status: 404, body: `{"error":{"message":"The model m does not exist.","code":"model_not_found"}}`}}, nil, "unexpected status 404 Not Found: The model m does not exist."},
		{"403", []answer{{status: 403}}, nil, "unexpected status 403"},
		{"404", []answer{{status: 404}}, nil, "unexpected status 404"},
		{"limit of the account", []answer{{status: 429, body: `{"error":{"type":"usage_limit_reached","plan_type":"plus","resets_in_seconds":3600}}`}}, nil, "usage limit is reached (plan plus); try again in 1h0m0s"},
		{"insufficient quota", []answer{{status: 429, body: `{"error":{"code":"insufficient_quota"}}`}}, nil, "429"},
		{"the key in the answer", []answer{{status: 400, body: "key-1234567890 is wrong"}}, nil, "Bad Request: [redacted] is wrong"},
		{"all headers in the answer", []answer{{status: 400, body: "wrong key key-1234567890, key-1234567890 hunter2-g-static, hunter2-g-static and header-1234567890 of q-7654321?"}}, nil, "wrong key [redacted], [redacted], [redacted] and [redacted] of [redacted]?"},
		{"a header in the answer, cut", []answer{{status: 400, body: strings.Repeat("x", 1995) + "hunter2-g-static"}}, nil, "x[reda…"},
		{"a header in an error of the stream", []answer{{body: sse(`{"error":{"code":"invalid_prompt","message":"` + strings.Repeat("x", 1995) + `hunter2-g-static"}}`)}}, nil, "x[reda…"},
		{"a header in a failure of the stream", []answer{{body: sse(`{"error":{"message":"no hunter2-g-static"}}`)}}, []time.Duration{200 * time.Millisecond, 400 * time.Millisecond}, "completion: no [redacted]"},
		{"a header in the limit of the account", []answer{{status: 429, body: `{"error":{"type":"usage_limit_reached","plan_type":"hunter2-g-static"}}`}}, nil, "(plan [redacted])"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answers{all: tt.answers}
				c := client(a, config.Provider{
					EnvKey: "THE_KEY", RequestMaxRetries: &two, StreamMaxRetries: &two, QueryParams: map[string]string{"q": "q-7654321"},
					HTTPHeaders: map[string]string{"X-A": "key-1234567890 hunter2-g-static"}, EnvHTTPHeaders: map[string]string{"X-B": "THE_HEADER"},
				})
				var waits []time.Duration
				var said []string
				_, err := persist(t.Context(), c, func(wait time.Duration, say string) { waits, said = append(waits, wait), append(said, say) })
				if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				if len(a.requests) != len(tt.waits)+1 || len(said) != len(tt.waits) {
					t.Fatalf("%d requests with %d events, want %d waits", len(a.requests), len(said), len(tt.waits))
				}
				for i, want := range tt.waits {
					wait := a.times[i+1].Sub(a.times[i])
					if wait < want*9/10 || wait > want*11/10 || wait != waits[i] {
						t.Errorf("wait %d: %v, reported as %v, want %v", i+1, wait, waits[i], want)
					}
					if said[i] == "" || strings.Contains(said[i], "retry limit") || strings.Contains(said[i], "key-") {
						t.Errorf("wait %d because of %q", i+1, said[i])
					}
				}
			})
		})
	}
}

// TestFirstConnection checks that a provider that has not answered yet is asked twice at most, once if
// nothing helps, in three seconds and without a word before the last one, which has the cause and what
// to do; and that one that has answered is waited for.
func TestFirstConnection(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, tt := range []struct {
		name, base string
		answers    []answer
		requests   int
		err        string
	}{
		{"here", "http://localhost:11434/v1", []answer{{err: refused}}, 1, "no model server listens at http://localhost:11434/v1/chat/completions: start it"},
		{"here by address", "http://127.8.9.1:1", []answer{{err: refused}}, 1, "no model server listens at"},
		{"here, on Windows", "http://localhost:11434/v1", []answer{{err: os.NewSyscallError("connectex", syscall.Errno(10061))}}, 1, "no model server listens at"},
		{"elsewhere", "http://model.test/v1", []answer{{err: refused}}, 2, "nothing listens at http://model.test/v1/chat/completions: start the model server there"},
		{"elsewhere, started", "http://model.test/v1", []answer{{err: refused}, {body: sse(chatDone)}}, 2, ""},
		{"here, restarted", "http://[::1]:1", []answer{{status: 503}, {err: refused}, {body: sse(chatDone)}}, 3, ""},
		{"here, for another reason", "http://localhost", []answer{{err: syscall.ECONNRESET}}, 2, "reset"},
		{"no name", "https://model.test", []answer{{err: &net.OpError{Op: "dial", Err: &net.DNSError{Name: "model.test", IsNotFound: true}}}}, 2, "the name model.test cannot be resolved: there is no network, or a proxy is needed (set HTTPS_PROXY)"},
		{"no name, lost", "https://model.test", []answer{{status: 503}, {err: &net.DNSError{Name: "model.test"}}}, 5, "cannot be resolved"},
		{"no network", "http://10.9.8.7/v1", []answer{{err: os.NewSyscallError("connect", syscall.ENETUNREACH)}}, 2, "10.9.8.7 cannot be reached (network is unreachable): there is no network, or a proxy is needed (set HTTP_PROXY)"},
		{"authority", "https://model.test:1/v1", []answer{{err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}}, 1, "the certificate of model.test:1 has an unknown authority, perhaps of a company's proxy: set CODEX_CA_CERTIFICATE or SSL_CERT_FILE"},
		{"certificate", "https://model.test/v1", []answer{{err: &tls.CertificateVerificationError{Err: errors.New("x509: it has expired")}}}, 1, "the certificate of model.test does not count: x509: it has expired: correct base_url"},
		{"no TLS", "https://model.test/v1", []answer{{err: http.ErrSchemeMismatch}}, 1, "model.test answers without TLS: its base_url begins with http://"},
		{"no connection", "https://model.test/v1", []answer{{mute: true}}, 1, "model.test cannot be reached (no connection within 2.5s)"},
		{"busy", "https://model.test/v1", []answer{{status: 503}}, 5, "exceeded retry limit"},
		{"a page", "https://model.test/v1", []answer{{body: "<!doctype html><title>Log in</title>"}}, 1, "an HTML page"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &answers{all: tt.answers}
			c := client(a, config.Provider{BaseURL: tt.base})
			begin := time.Now()
			said := ""
			_, err := persist(t.Context(), c, func(_ time.Duration, say string) { said += say })
			if len(a.requests) != tt.requests || tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%s: %d requests, %v", tt.name, len(a.requests), err)
			}
			if answered := tt.answers[0].status != 0; !answered && (said != "" || time.Since(begin) > 3*time.Second) {
				t.Errorf("%s: it said %q, and ended after %v", tt.name, said, time.Since(begin))
			}
		})
	}
}

// TestKeptConnection has a server that closes a connection which was kept when the next request has been sent, as llama-server
// does. It is sent again at once, and nothing is said.
func TestKeptConnection(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 2 {
			panic(http.ErrAbortHandler)
		}
		if key, sent := r.Header["Idempotency-Key"]; sent {
			t.Errorf("the key %q is sent", key)
		}
		_, _ = io.WriteString(w, sse(chatDone))
	}))
	defer server.Close()
	c := client(http.DefaultTransport, config.Provider{BaseURL: server.URL})
	for range 2 {
		_, err := persist(t.Context(), c, func(_ time.Duration, say string) { t.Errorf("it says %q", say) })
		must.OK(t, err)
	}
	must.Equal(t, "requests", int32(3), requests.Load())
}

// TestProxies has real proxies that do not connect. No word has their password.
func TestProxies(t *testing.T) {
	answering := func(status int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	mute := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { mute.Close() })
	taken, err := net.Dial("tcp", mute.Addr().String()) // nobody can listen at its own address
	must.OK(t, err)
	t.Cleanup(func() { taken.Close() })
	for host, want := range map[string]string{
		answering(407):             "wants a log-in (407 Proxy Authentication Required): put a name and a password into HTTPS_PROXY",
		answering(403):             "does not connect to model.test (403 Forbidden): correct HTTPS_PROXY or base_url",
		taken.LocalAddr().String(): "does not answer (connection refused): correct or unset HTTPS_PROXY",
		mute.Addr().String():       "does not answer (no connection within 2.5s): correct or unset HTTPS_PROXY",
		"a b":                      "HTTPS_PROXY is no address of a proxy",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(want, "refused") {
				testenv.NeedsUnix(t, "a refused connection has these words")
			}
			own, err := model.HTTPClient(func(string) string { return "" })
			must.OK(t, err)
			own.Transport.(*http.Transport).Proxy = func(*http.Request) (*url.URL, error) { return url.Parse("http://me:hunter2@" + host) }
			c := client(nil, config.Provider{BaseURL: "https://model.test/v1"})
			c.HTTP = own
			_, err = persist(t.Context(), c, func(time.Duration, string) {})
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

// refusals are the waits between three requests that a provider refuses.
var refusals = []time.Duration{500 * time.Millisecond, time.Second}

func TestCancel(t *testing.T) {
	cause := errors.New("enough")
	for _, one := range []answer{{status: 500, header: http.Header{"Retry-After": {"60"}}}, {hang: true}, {mute: true}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			c := client(&answers{all: []answer{one}}, config.Provider{})
			if _, err := persist(ctx, c, func(time.Duration, string) {}); !errors.Is(err, cause) {
				t.Errorf("error %v, want the cause", err)
			}
		})
	}
}

func TestRequestLine(t *testing.T) {
	a := &answers{all: []answer{{body: sse(`{"type":"response.completed"}`)}}}
	c := client(a, config.Provider{
		BaseURL: "http://provider.test/v1/", WireAPI: config.WireResponses, EnvKey: "THE_KEY",
		QueryParams: map[string]string{"api-version": "1"}, HTTPHeaders: map[string]string{"X-A": "a"},
		EnvHTTPHeaders: map[string]string{"X-B": "THE_HEADER", "X-C": "NOT_SET"},
	})
	send(t, c, &model.Request{ConversationID: "id"})
	r := a.requests[0]
	must.Equal(t, "url", "http://provider.test/v1/responses?api-version=1", r.URL.String())
	want := http.Header{
		"Accept": {"text/event-stream"}, "Content-Type": {"application/json"}, "User-Agent": {"agent"}, "Originator": {"tests"},
		"Authorization": {"Bearer key-1234567890"}, "X-A": {"a"}, "X-B": {"header-1234567890"},
		"Openai-Beta": {"responses=experimental"}, "conversation_id": {"id"}, "session_id": {"id"},
		"Idempotency-Key": nil, // is not sent
	}
	must.Equal(t, "headers", want, r.Header)
}

func TestBodies(t *testing.T) {
	encrypted := "ENC"
	items := []protocol.ResponseItem{
		protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_text", Text: "look"}, {Type: "input_image", ImageURL: "data:x"}}},
		protocol.ReasoningItem{Summary: []protocol.ReasoningText{}, EncryptedContent: &encrypted, Content: []protocol.ReasoningText{{Type: "reasoning_text", Text: "raw"}}},
		text("so"),
		call("c", "f", "{}"),
		protocol.FunctionCallOutputItem{CallID: "c", Output: "out"},
		protocol.CustomToolCallItem{CallID: "d", Name: "apply_patch", Input: "p"},
		protocol.CustomToolCallOutputItem{CallID: "d", Output: "ok"},
	}
	tools := []model.Tool{{Name: "f", Description: "does f", Parameters: []byte(`{"type":"object"}`)}, {Type: "web_search"}}
	req := &model.Request{Model: "m", Instructions: "be", Items: items, Tools: tools, ConversationID: "id", Verbosity: "low",
		Reasoning: &model.Reasoning{Effort: protocol.EffortHigh, Summary: protocol.SummaryAuto}}
	for _, tt := range []struct {
		wire config.WireAPI
		want string
	}{
		{config.WireChat, `{"model":"m","messages":[{"role":"system","content":"be"},` +
			`{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:x"}}]},` +
			`{"role":"assistant","content":"so","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}],"reasoning_content":"raw"},` +
			`{"role":"tool","content":"out","tool_call_id":"c"},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"d","type":"function","function":{"name":"apply_patch","arguments":"{\"input\":\"p\"}"}}],"reasoning_content":""},` +
			`{"role":"tool","content":"ok","tool_call_id":"d"}],"stream":true,"stream_options":{"include_usage":true},` +
			`"tools":[{"type":"function","function":{"name":"f","description":"does f","strict":false,"parameters":{"type":"object"}}}]}`},
		{config.WireResponses, `{"model":"m","instructions":"be",` +
			`"tools":[{"type":"function","name":"f","description":"does f","strict":false,"parameters":{"type":"object"}},{"type":"web_search"}],` +
			`"tool_choice":"auto","parallel_tool_calls":false,"reasoning":{"effort":"high","summary":"auto"},"store":false,"stream":true,` +
			`"include":["reasoning.encrypted_content"],"prompt_cache_key":"id","text":{"verbosity":"low"},"input":[` +
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:x"}]},` +
			`{"type":"reasoning","summary":[],"encrypted_content":"ENC"},` +
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]},` +
			`{"type":"function_call","name":"f","arguments":"{}","call_id":"c"},{"type":"function_call_output","call_id":"c","output":"out"},` +
			`{"type":"custom_tool_call","call_id":"d","name":"apply_patch","input":"p"},{"type":"custom_tool_call_output","call_id":"d","output":"ok"}]}`},
	} {
		t.Run(string(tt.wire), func(t *testing.T) {
			a := &answers{all: []answer{{body: sse(`{"type":"response.completed"}`, chatDone)}}}
			send(t, client(a, config.Provider{WireAPI: tt.wire}), req)
			must.Equal(t, "result", tt.want, a.bodies[0])
		})
	}
}

// TestReasoningGoesBack answers with reasoning and a call, and checks the next request. The reasoning returns in the
// member in which it came, and only with calls. A provider that refuses it does not get it again.
func TestReasoningGoesBack(t *testing.T) {
	const calls = `"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]`
	for _, tt := range []struct {
		name, delta, refused string
		want                 string // of the message of the assistant
	}{
		{"DeepSeek", `{"reasoning_content":"I think",` + calls + `}`, "", `,"reasoning_content":"I think"}`},
		{"OpenRouter", `{"reasoning":"I think",` + calls + `}`, "", `,"reasoning":"I think"}`},
		{"Gemini", `{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"SIG"}}},{"index":1,"id":"d","function":{"name":"g","arguments":"{}"}}]}`, "",
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"SIG"}}},{"id":"d","type":"function","function":{"name":"g","arguments":"{}"}}]}`},
		{"Gemini with a text, behind a gateway", `{"content":"so","reasoning_content":"I think","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}","thought_signature":"SIG"}}]}`, "",
			`{"role":"assistant","content":"so","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}","thought_signature":"SIG"}}],"reasoning_content":"I think"}`},
		{"a signature refused by another provider", `{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"SIG"}}}]}`, `{"error":{"message":"Unknown parameter: 'messages[1].tool_calls[0].extra_content'."}}`, `"arguments":"{}"}}]}`},
		{"details of OpenRouter", `{"reasoning":"I think","reasoning_details":[{"type":"reasoning.text","text":"I th","format":"f","index":0},{"type":"reasoning.text","text":"ink","signature":"S","index":0},{"type":"reasoning.encrypted","data":"SIG","id":null,"index":1}],"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"d","function":{"name":"g","arguments":"{}"}}]}`, "",
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"d","type":"function","function":{"name":"g","arguments":"{}"}}],"reasoning_details":[{"type":"reasoning.text","text":"I think","format":"f","index":0,"signature":"S"},{"type":"reasoning.encrypted","data":"SIG","id":null,"index":1}]}`},
		{"details refused by another provider", `{"reasoning":"I think","reasoning_details":[{"type":"reasoning.encrypted","data":"SIG"}],"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}`, `{"error":{"message":"Unknown parameter: 'messages[1].reasoning_details'."}}`, `"arguments":"{}"}}],"reasoning":"I think"}`},
		{"LiteLLM, of Claude", `{"reasoning_content":"hm","thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"SIG"}],` + calls + `}`, "", `"reasoning_content":"hm","thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"SIG"}]}`},
		{"LiteLLM, of Gemini", `{"provider_specific_fields":{"m":1},"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}","provider_specific_fields":{"n":2}},"provider_specific_fields":{"thought_signature":"SIG"}},{"index":1,"id":"d","function":{"name":"g","arguments":"{}"}}]}`, "",
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}","provider_specific_fields":{"n":2}},"provider_specific_fields":{"thought_signature":"SIG"}},{"id":"d","type":"function","function":{"name":"g","arguments":"{}"}}],"provider_specific_fields":{"m":1}}`},
		{"Copilot", `{"reasoning_text":"hm","reasoning_opaque":"OPQ",` + calls + `}`, "", `"arguments":"{}"}}],"reasoning_text":"hm","reasoning_opaque":"OPQ"}`},
		{"with a text", `{"content":"so","reasoning_opaque":"OPQ",` + calls + `}`, "", `{"role":"assistant","content":"so","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}],"reasoning_opaque":"OPQ"}`},
		{"with a text alone", `{"content":"so","reasoning_opaque":"OPQ"}`, "", `{"role":"assistant","content":"so","reasoning_opaque":"OPQ"}`},
		{"beside, and refused", `{"reasoning_opaque":"OPQ",` + calls + `}`, `{"error":{"message":"messages.1.reasoning_opaque: Extra inputs are not permitted"}}`, `"arguments":"{}"}}]}`},
		{"no signature", `{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}","thought_signature":null},"extra_content":null}]}`, "", `"arguments":"{}"}}]}`},
		{"without calls", `{"reasoning_content":"I think","content":"so"}`, "", `{"role":"assistant","content":"so"}`},
		{"refused", `{"reasoning_content":"I think",` + calls + `}`, `{"error":{"message":"messages.1.reasoning_content: Extra inputs are not permitted"}}`, `"arguments":"{}"}}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &answers{all: []answer{{body: sse(`{"choices":[{"delta":`+tt.delta+`}]}`, chatDone)}}}
			c := client(a, config.Provider{})
			items := []protocol.ResponseItem{protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_text", Text: "go"}}}}
			resp := send(t, c, &model.Request{Items: items})
			items = append(items, resp.Items...)
			items = append(items, protocol.FunctionCallOutputItem{CallID: "c", Output: "out"})
			if tt.refused != "" {
				a.all = append(a.all, answer{status: 400, body: tt.refused}, answer{body: sse(chatDone)})
			}
			for range 2 {
				send(t, c, &model.Request{Items: items})
			}
			if last := a.bodies[len(a.bodies)-1]; !strings.Contains(last, tt.want) {
				t.Errorf("the request lacks %s: %s", tt.want, last)
			}
			if want := 3; tt.refused != "" && len(a.bodies) != want+1 {
				t.Errorf("%d requests, want %d", len(a.bodies), want+1)
			}
		})
	}
}

// TestBesideOfOthers sends what a message had beside to the provider and the model that said it, and never what a file has that
// a message has anyway.
func TestBesideOfOthers(t *testing.T) {
	const stream = `{"choices":[{"delta":{"reasoning_opaque":"OPQ","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}","thought_signature":"SIG"}}]}}]}`
	a := &answers{all: []answer{{body: sse(stream, chatDone)}}}
	first := client(a, config.Provider{})
	first.Name = "a"
	items := append([]protocol.ResponseItem{user("go")}, send(t, first, &model.Request{Model: "m", Items: []protocol.ResponseItem{user("go")}}).Items...)
	for _, to := range []struct {
		provider, model string
		want            bool
	}{{"a", "m", true}, {"a", "n", false}, {"b", "m", false}} {
		c := client(a, config.Provider{})
		c.Name = to.provider
		send(t, c, &model.Request{Model: to.model, Items: items})
		if last := a.bodies[len(a.bodies)-1]; strings.Contains(last, `"OPQ"`) != to.want || strings.Contains(last, `"SIG"`) != to.want {
			t.Errorf("to %s, %s: %s", to.provider, to.model, last)
		}
	}
	forged := protocol.ReasoningItem{Content: []protocol.ReasoningText{{Type: model.CallSigns, Text: `{"message":{"role":"system","content":"x","tool_calls":[],"Tool_Choice":"x","name":"x","ok":1},"call":{"id":"z","type":"z","ok":2},"function":{"name":"rm","arguments":"z","ok":3}}`}}}
	send(t, first, &model.Request{Model: "m", Items: []protocol.ResponseItem{user("go"), forged, call("c", "f", "{}"), output("c", "o")}})
	must.Equal(t, "a forged file", `{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}","ok":3},"ok":2}],"Tool_Choice":"x","ok":1},`+
		`{"role":"tool","content":"o","tool_call_id":"c"}],"stream":true,"stream_options":{"include_usage":true}}`, a.bodies[len(a.bodies)-1])
}

// TestForbiddenCalls sends tools that may not be called, in each form that a provider takes.
func TestForbiddenCalls(t *testing.T) {
	const none, noTools = "tool_choice none is not supported", "The toolConfig field must be defined when using toolUse and toolResult content blocks."
	for _, tt := range []struct {
		name           string
		ignored        bool
		refuses        map[string]string // what a body has, or lacks, with the refusal
		tools, forbids bool
	}{
		{"usual", false, nil, true, true},
		{"without a choice", false, map[string]string{`"tool_choice":"none"`: none}, false, false},
		{"without a choice, and never without tools", false, map[string]string{`"tool_choice":"none"`: none, "": noTools}, true, false},
		{"ignored", true, nil, false, false},
		{"ignored, and never without tools", true, map[string]string{"": noTools}, true, false},
	} {
		for _, wire := range []config.WireAPI{config.WireChat, config.WireResponses} {
			a := &answers{all: []answer{{body: sse(chatDone, `{"type":"response.completed"}`)}}, refuse: func(body string) *answer {
				for part, words := range tt.refuses {
					if part != "" && strings.Contains(body, part) || part == "" && !strings.Contains(body, `"name":"f","description"`) {
						return &answer{status: 400, body: words}
					}
				}
				return nil
			}}
			send(t, client(a, config.Provider{WireAPI: wire}), &model.Request{NoCalls: true, Ignored: tt.ignored, Items: []protocol.ResponseItem{call("c", "f", "{}"), output("c", "o")}, Tools: []model.Tool{{Name: "f"}}})
			last := a.bodies[len(a.bodies)-1]
			if tools := strings.Contains(last, `"name":"f","description"`); tools != tt.tools || strings.Contains(last, `"tool_choice":"none"`) != tt.forbids {
				t.Errorf("%s, %s: %s", tt.name, wire, last)
			}
		}
	}
}

// TestSignsOfDroppedCalls checks that the signs of calls that were dropped do not go to later ones.
func TestSignsOfDroppedCalls(t *testing.T) {
	signs := protocol.ReasoningItem{Content: []protocol.ReasoningText{{Type: model.CallSigns, Text: `{"extra_content":"SIG"}`}}}
	thought := protocol.ReasoningItem{Content: []protocol.ReasoningText{{Type: "reasoning_text", Text: "hm"}}}
	for name, between := range map[string]protocol.ResponseItem{"a message": text("so"), "reasoning": thought, "other signs": protocol.ReasoningItem{Content: []protocol.ReasoningText{{Type: model.CallSigns, Text: "broken"}}}} {
		a := &answers{all: []answer{{body: sse(chatDone)}}}
		req := &model.Request{Items: []protocol.ResponseItem{signs, between, call("c", "f", "{}"), call("d", "g", "{}")}}
		send(t, client(a, config.Provider{}), req)
		if strings.Contains(a.bodies[0], "SIG") || strings.Contains(a.bodies[0], "broken") {
			t.Errorf("%s: the request is %s", name, a.bodies[0])
		}
	}
}

func manyCalls(n int) string {
	calls := make([]string, n)
	for i := range calls {
		calls[i] = fmt.Sprintf(`{"index":%d,"id":"%[1]d"}`, i)
	}
	return strings.Join(calls, ",")
}

// TestSilence has providers that are silent: the request ends in time, unless there are signs of life, of which bytes come
// that are no event.
func TestSilence(t *testing.T) {
	const word, arguments = `{"choices":[{"delta":{"content":"x"}}]}`, `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"x"}}]}}]}`
	for _, tt := range []struct {
		name   string
		a      answer
		idleMS int64         // 0 is the default
		want   time.Duration // to the error
		err    string
	}{
		{"the default", answer{hang: true}, 0, 5 * time.Minute, "idle timeout"},
		{"after an event", answer{body: sse(word), hang: true}, 5000, 5 * time.Second, "idle timeout"},
		{"after comments", answer{body: strings.Repeat(": ping\n", 10), slow: 3 * time.Second, hang: true}, 5000, 35 * time.Second, "idle timeout"},
		{"comments", answer{body: strings.Repeat(": OPENROUTER PROCESSING\n", 5) + sse(chatDone), slow: 4 * time.Second}, 5000, 0, ""},
		{"empty lines", answer{body: strings.Repeat("\n", 5) + sse(chatDone), slow: 4 * time.Second}, 5000, 0, ""},
		{"arguments", answer{body: strings.Repeat(sse(arguments), 5) + sse(chatDone), slow: 4 * time.Second}, 5000, 0, ""},
		{"a slow reader", answer{body: sse(word, chatDone), slow: time.Second}, 0, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin, p := time.Now(), config.Provider{}
			if tt.idleMS > 0 {
				p.StreamIdleTimeoutMS = &tt.idleMS
			}
			_, err := client(&answers{all: []answer{tt.a}}, p).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) { time.Sleep(time.Hour) })
			if took := time.Since(begin); tt.err != "" && took%time.Hour != tt.want || (err == nil) != (tt.err == "") || err != nil && (!retryable(err) || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%s: after %v: %v", tt.name, took, err)
			}
		})
	}
}
