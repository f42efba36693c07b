package model_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRedirects checks that neither the key nor the conversation is sent to another host.
func TestRedirects(t *testing.T) {
	for _, tt := range []struct {
		base, location string
		status         int
		followed       bool
	}{
		{"http://provider.test/v1", "/elsewhere", 307, true},
		{"http://provider.test/v1", "http://PROVIDER.test:80/x", 308, true},
		{"http://provider.test/v1", "https://provider.test/x", 308, true},
		{"https://provider.test/v1", "https://provider.test:443/x", 307, true},
		{"https://provider.test/v1", "http://provider.test/x", 307, false},
		{"http://provider.test/v1", "http://provider.test:8080/x", 307, false},
		{"http://provider.test:8080/v1", "https://provider.test/x", 308, false},
		{"https://provider.test:8443/v1", "http://provider.test:8443/x", 307, false},
		{"http://provider.test/v1", "/elsewhere", 301, true},
		{"http://provider.test/v1", "https://provider.test/x", 302, true},
		{"http://provider.test/v1", "/elsewhere", 303, true},
		{"http://provider.test/v1", "http://evil.test/x", 301, false},
		{"http://provider.test/v1", "http://evil.test/x", 302, false},
		{"http://provider.test/v1", "//evil.test/x", 303, false},
		{"http://provider.test/v1", "http://evil.test/x?key=secret", 307, false},
		{"http://provider.test/v1", "http://evil.provider.test/x", 308, false},
		{"http://provider.test/v1", "http://provider.test.evil.test/x", 308, false},
		{"http://provider.test/v1", "http://provider.test@evil.test/x", 308, false},
	} {
		t.Run(tt.location, func(t *testing.T) {
			a := &answers{all: []answer{
				{status: tt.status, header: http.Header{"Location": {tt.location}}},
				{body: sse(`{"choices":[{"delta":{"content":"hello"}}]}`) + "data: [DONE]\n\n"},
			}}
			c := client(a, config.Provider{BaseURL: tt.base, EnvKey: "THE_KEY", EnvHTTPHeaders: map[string]string{"api-key": "THE_HEADER"}})
			_, err := c.Stream(t.Context(), &model.Request{Model: "m"}, func(protocol.EventMsg) {})
			if tt.followed {
				if err != nil || len(a.requests) != 2 {
					t.Fatalf("error %v after %d requests", err, len(a.requests))
				}
				first, again := a.requests[0], a.requests[1]
				if h := again.Header; h.Get("api-key") == "" || h.Get("Content-Type") != "application/json" || again.Method != http.MethodPost || again.ContentLength != first.ContentLength {
					t.Errorf("%s of %d bytes with %v", again.Method, again.ContentLength, h)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "redirects to another host") || len(a.requests) != 1 {
				t.Errorf("error %v after %d requests", err, len(a.requests))
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error repeats the address's query: %v", err)
			}
			if again := retryable(err); again {
				t.Error("the request is repeated")
			}
		})
	}
}

// TestRedirectsOfTheClient checks that the client's own CheckRedirect still decides within the host.
func TestRedirectsOfTheClient(t *testing.T) {
	a := &answers{all: []answer{{status: 307, header: http.Header{"Location": {"/again"}}}}}
	c := client(a, config.Provider{})
	if _, err := c.Stream(t.Context(), &model.Request{Model: "m"}, func(protocol.EventMsg) {}); err == nil || len(a.requests) != 10 {
		t.Errorf("error %v after %d requests", err, len(a.requests))
	}
	a.requests = nil
	enough := errors.New("enough")
	c.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return enough }
	if _, err := c.Stream(t.Context(), &model.Request{Model: "m"}, func(protocol.EventMsg) {}); !errors.Is(err, enough) || len(a.requests) != 1 {
		t.Errorf("error %v after %d requests", err, len(a.requests))
	}
}

// TestSilentProvider checks that the error names the phase in which a provider was silent that accepts connections.
func TestSilentProvider(t *testing.T) {
	idle := int64(5000)
	accept := func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go io.Copy(io.Discard, theirs) // until ours is closed
		return ours, nil
	}
	for url, want := range map[string]string{
		"https://provider.test/v1?key=secret": "the TLS handshake was not finished within 5s", "http://provider.test/v1?key=secret": "no answer within 5s",
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &http.Transport{DialContext: accept}
				c := client(nil, config.Provider{BaseURL: url, StreamIdleTimeoutMS: &idle})
				c.HTTP = &http.Client{Transport: transport}
				_, err := c.Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
				if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
					t.Errorf("error %v, want %q", err, want)
				}
				transport.CloseIdleConnections()
			})
		})
	}
}

// lists is a provider that answers GET requests by their path.
type lists map[string]string

func (l lists) RoundTrip(r *http.Request) (*http.Response, error) {
	body, ok := l[r.URL.Path]
	status := http.StatusOK
	if !ok {
		status = http.StatusNotFound
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// TestWindow reads the context window from the lists of servers that state it.
func TestWindow(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lists lists
		want  int64
	}{
		{"llama.cpp, whose only model has another name", lists{"/v1/models": `{"object":"list","data":[{"id":"tiny.gguf","object":"model","meta":{"vocab_type":2,"n_vocab":151936,"n_ctx":4096,"n_ctx_train":32768}}]}`}, 4096},
		{"vLLM", lists{"/v1/models": `{"object":"list","data":[{"id":"m","object":"model","max_model_len":32768}]}`}, 32768},
		{"OpenRouter", lists{"/v1/models": `{"data":[{"id":"other","context_length":1},{"id":"m","context_length":131072,"top_provider":{"context_length":65536}}]}`}, 131072},
		{"Groq", lists{"/v1/models": `{"data":[{"id":"other"},{"id":"m","context_window":8192}]}`}, 8192},
		{"Mistral", lists{"/v1/models": `{"data":[{"id":"other"},{"id":"m","max_context_length":32768}]}`}, 32768},
		{"LM Studio, what is loaded", lists{"/v1/models": `{"data":[{"id":"m"},{"id":"other"}]}`,
			"/api/v0/models": `{"data":[{"id":"m","state":"loaded","max_context_length":32768,"loaded_context_length":4096},{"id":"other","state":"not-loaded","max_context_length":1000}]}`}, 4096},
		{"LM Studio, not loaded", lists{"/v1/models": `{"data":[{"id":"m"},{"id":"other"}]}`,
			"/api/v0/models": `{"data":[{"id":"m","state":"not-loaded","max_context_length":32768},{"id":"other"}]}`}, 0},
		{"OpenAI, which does not say", lists{"/v1/models": `{"data":[{"id":"m"},{"id":"other"}]}`}, 0},
		{"not in the list", lists{"/v1/models": `{"data":[{"id":"a","context_length":1},{"id":"b","context_length":2}]}`}, 0},
		{"a text, a fraction and less than nothing", lists{"/v1/models": `{"data":[{"id":"m","context_length":"x","max_model_len":1.5,"context_window":-1}]}`}, 0},
		{"as long as it may be", lists{"/v1/models": `{"data":[{"id":"m","context_window":8192}]}` + strings.Repeat(" ", 2<<20-45)}, 8192},
		{"too long", lists{"/v1/models": strings.Repeat(" ", 2<<20) + `{"data":[{"id":"m","context_window":8192}]}`}, 0},
		{"no list", lists{}, 0},
		{"a list that cannot be read", lists{"/v1/models": `{"data":7}`}, 0},
	} {
		c := &model.Client{
			Provider: config.Provider{BaseURL: "http://provider.test/v1"}, HTTP: &http.Client{Transport: tt.lists}, Getenv: func(string) string { return "" },
		}
		must.Equal(t, tt.name, tt.want, c.Window(t.Context(), "m"))
	}
}

func TestModelsOfASilentProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, begin := client(&answers{all: []answer{{mute: true}}}, config.Provider{}), time.Now()
		if _, err := c.Models(t.Context()); err == nil || err.Error() != "no answer within 10s" || time.Since(begin) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// TestElsewhere has what providers refuse with: another one is asked only if the request itself is not the reason.
func TestElsewhere(t *testing.T) {
	limit := func(resets string) answer {
		return answer{status: 429, body: `{"error":{"type":"usage_limit_reached","resets_in_seconds":` + resets + `}}`}
	}
	for name, tt := range map[string]struct {
		answer answer
		after  time.Duration
		ok     bool
	}{
		"a usage limit":        {limit("3600"), time.Hour, true},
		"a limit of the past":  {limit("-3600"), 0, true},
		"too many requests":    {answer{status: 429, header: http.Header{"Retry-After": {"60"}}}, time.Minute, true},
		"unavailable":          {answer{status: 503}, 0, true},
		"overloaded":           {answer{status: 529}, 0, true},
		"a fault of a server":  {answer{status: 500}, 0, false},
		"no credit":            {answer{status: 402}, 0, true},
		"no quota":             {answer{status: 429, body: `{"error":{"code":"insufficient_quota"}}`}, 0, true},
		"no quota in a stream": {answer{body: sse(`{"error":{"code":"insufficient_quota","message":"no"}}`)}, 0, true},
		"a refused key":        {answer{status: 401}, 0, true},
		"a wrong request":      {answer{status: 400}, 0, false},
		"forbidden content":    {answer{status: 403}, 0, false},
		"no such model":        {answer{status: 404}, 0, false},
		"busy":                 {answer{body: sse(`{"error":{"code":"slow_down","message":"try again in 1s"}}`)}, time.Second, true},
		"busy, by its status":  {answer{body: sse(`{"error":{"code":503,"message":"later"}}`)}, 0, true},
		"a broken stream":      {answer{body: sse(`{"choices":[{"delta":{"content":"x"}}]}`)}, 0, false},
		"no connection":        {answer{err: errors.New("refused")}, 0, false},
		"too long":             {answer{status: 413}, 0, false},
		"a limit of ours":      {answer{body: sse(`{"choices":[{"delta":{"tool_calls":[` + manyCalls(129) + `]}}]}`)}, 0, false},
	} {
		_, err := client(&answers{all: []answer{tt.answer}}, config.Provider{}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		for _, err := range []error{err, fmt.Errorf("summarising: %w", err)} {
			said, ok := errors.AsType[*model.ProviderError](err)
			if ok = ok && said.Elsewhere; ok != tt.ok || ok && said.After != tt.after {
				t.Errorf("%s: %+v, want %v, %t", name, said, tt.after, tt.ok)
			}
		}
	}
	_, err := client(nil, config.Provider{EnvKey: "NO_KEY"}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
	if _, ok := errors.AsType[*model.ProviderError](err); ok || err == nil {
		t.Errorf("a missing key: %v", err)
	}
}
