package model_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
)

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
		if got := c.Window(t.Context(), "m"); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// silent is a provider that does not answer.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestModelsOfASilentProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &model.Client{
			Provider: config.Provider{BaseURL: "http://provider.test/v1"}, HTTP: &http.Client{Transport: silent{}}, Getenv: func(string) string { return "" },
		}
		begin := time.Now()
		if _, err := c.Models(t.Context()); err == nil || err.Error() != "no answer within 10s" || time.Since(begin) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}
