package model_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestElsewhere has what providers refuse with: another one is asked only if the request itself is not
// the reason.
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
