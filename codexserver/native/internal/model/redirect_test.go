package model_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
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
				if err != nil || len(a.requests) != 2 || a.requests[1].Header.Get("api-key") == "" {
					t.Errorf("error %v after %d requests", err, len(a.requests))
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

// TestRedirectsOfTheClient checks that the client's own CheckRedirect still decides
// within the host.
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
