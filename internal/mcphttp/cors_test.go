package mcphttp_test

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

const page = "https://app.example.com"

// shares fails the test unless only that origin may read the answer, without credentials. No
// origin may read it if origin is "".
func shares(t *testing.T, name string, h http.Header, origin string) {
	t.Helper()
	if got := h.Values("Access-Control-Allow-Origin"); strings.Join(got, "|") != origin {
		t.Errorf("%s: Access-Control-Allow-Origin %q, want %q", name, got, origin)
	}
	if h.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%s shares credentials", name)
	}
}

// TestPreflight checks that preflights of allowed origins are answered without a token.
func TestPreflight(t *testing.T) {
	s := open(t, untouched(t), nil, func(o *mcphttp.Options) { o.Origins = []string{page, "https://other.example.com"} })
	preflight := func(more headers) headers {
		h := headers{"Authorization": "", "Origin": page, "Access-Control-Request-Method": "POST", "Accept": "*/*", "Content-Type": ""}
		maps.Copy(h, more)
		return h
	}
	got := s.do(http.MethodOptions, "", preflight(headers{"Access-Control-Request-Headers": "authorization,content-type,mcp-protocol-version,Mcp-Param-Thread,x-evil,mcp-a b,mcp-\u00e9"}))
	shares(t, "preflight", got.header, page)
	for name, want := range map[string]string{
		"Access-Control-Allow-Methods":  "POST, GET, DELETE",
		"Access-Control-Allow-Headers":  "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id, mcp-protocol-version, mcp-param-thread",
		"Access-Control-Max-Age":        "600",
		"Access-Control-Expose-Headers": "Mcp-Session-Id, WWW-Authenticate, Retry-After",
		"Vary":                          "Origin",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.header.Get(name), want)
		}
	}
	if got.status != http.StatusNoContent || got.body != "" {
		t.Errorf("preflight: %+v", got)
	}
	for name, tt := range map[string]struct {
		h      headers
		status int
		origin string
	}{
		"the other origin":          {preflight(headers{"Origin": "https://other.example.com"}), 204, "https://other.example.com"},
		"a foreign origin":          {preflight(headers{"Origin": "https://evil.example"}), 403, ""},
		"a subdomain":               {preflight(headers{"Origin": "https://x.app.example.com"}), 403, ""},
		"a longer name":             {preflight(headers{"Origin": page + ".evil.example"}), 403, ""},
		"another scheme":            {preflight(headers{"Origin": "http://app.example.com"}), 403, ""},
		"another port":              {preflight(headers{"Origin": page + ":444"}), 403, ""},
		"another case":              {preflight(headers{"Origin": "https://APP.example.com"}), 403, ""},
		"null":                      {preflight(headers{"Origin": "null"}), 403, ""},
		"a star":                    {preflight(headers{"Origin": "*"}), 403, ""},
		"this machine":              {preflight(headers{"Origin": "http://localhost"}), 403, ""},
		"another host":              {preflight(headers{"Host": "evil.example"}), 403, ""},
		"no origin":                 {preflight(headers{"Origin": ""}), 401, ""},
		"no preflight":              {preflight(headers{"Access-Control-Request-Method": ""}), 401, page},
		"a request without a token": {headers{"Authorization": "", "Origin": page}, 401, page},
	} {
		method := http.MethodOptions
		if name == "a request without a token" {
			method = http.MethodPost
		}
		got := s.do(method, "", tt.h)
		if got.status != tt.status {
			t.Errorf("%s: %+v", name, got)
		}
		shares(t, name, got.header, tt.origin)
	}
	many := strings.Repeat("mcp-x,", 1000)
	if got := s.do(http.MethodOptions, "", preflight(headers{"Access-Control-Request-Headers": many})); len(got.header.Get("Access-Control-Allow-Headers")) > 1000 {
		t.Errorf("%d bytes of headers", len(got.header.Get("Access-Control-Allow-Headers")))
	}
}

// TestSharedAnswers checks that a page may read the answer to its request.
func TestSharedAnswers(t *testing.T) {
	s := open(t, echo, nil, func(o *mcphttp.Options) { o.Origins = []string{page} })
	body, h := modern("1", "tools/list", "{}", "")
	for _, tt := range []struct{ origin, want string }{{page, page}, {"", ""}} {
		h["Origin"] = tt.origin
		got := s.post(body, h)
		shares(t, "origin "+tt.origin, got.header, tt.want)
		if got.status != 200 || got.header.Get("Vary") != "Origin" {
			t.Errorf("%q: %+v", tt.origin, got)
		}
	}
	// By default pages of this machine may send requests, but not read answers.
	s = open(t, echo, nil, nil)
	h["Origin"] = "http://localhost:3000"
	if got := s.post(body, h); got.status != 200 {
		t.Errorf("a page of this machine: %+v", got)
	} else {
		shares(t, "this machine", got.header, "")
	}
}

// TestRefusals checks that the error of Authenticate sets the answer.
func TestRefusals(t *testing.T) {
	var refusal error
	s := open(t, untouched(t), nil, func(o *mcphttp.Options) {
		o.Challenge, o.Metadata = `Bearer realm="x"`, "https://example.com/meta"
		o.Authenticate = func(*http.Request) (mcphttp.Principal, error) { return mcphttp.Principal{}, refusal }
	})
	const rest = `scope="codex:run codex:approve codex:read", resource_metadata="https://example.com/meta"`
	for name, tt := range map[string]struct {
		err              error
		status           int
		challenge, retry string
		words            string
	}{
		"any error":   {errors.New("secret"), 401, `Bearer realm="x", ` + rest, "", "a valid token is required\n"},
		"no token":    {&mcphttp.Refusal{Err: errors.New("secret")}, 401, `Bearer realm="x", ` + rest, "", "a valid token is required\n"},
		"a bad token": {&mcphttp.Refusal{Code: "invalid_token"}, 401, `Bearer realm="x", error="invalid_token", ` + rest, "", "a valid token is required\n"},
		"too many":    {&mcphttp.Refusal{Status: 429, RetryAfter: 1, Words: "slowly"}, 429, "", "1", "slowly\n"},
		"later":       {&mcphttp.Refusal{Status: 503, RetryAfter: 1500 * time.Millisecond}, 503, "", "2", "a valid token is required\n"},
		"no name":     {nil, 401, `Bearer realm="x", ` + rest, "", "a valid token is required\n"},
	} {
		refusal = tt.err
		body, h := modern("1", "tools/call", "{}", call)
		got := s.post(body, h)
		if got.status != tt.status || got.header.Get("WWW-Authenticate") != tt.challenge || got.header.Get("Retry-After") != tt.retry || got.body != tt.words {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
