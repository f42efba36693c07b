package native_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestWindowOfTheServer uses a server that states a context window of 4,096 tokens, which
// nothing configures. A message that does not fit any more is counted before it is sent:
// the history is summarised first.
func TestWindowOfTheServer(t *testing.T) {
	asked := 0
	var script *providertest.Server
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			asked++
			_, _ = io.WriteString(w, `{"data":[{"id":"tiny.gguf","meta":{"n_ctx":4096,"n_ctx_train":32768}}]}`)
			return
		}
		script.ServeHTTP(w, r)
	}))
	defer front.Close()
	b := setup(t, fmt.Sprintf("---\n[model_providers.front]\nbase_url = %q\n", front.URL+"/v1"), native.Limits{},
		providertest.Turn{Text: []string{"one"}, Usage: &providertest.Usage{Input: 2000, Output: 100, Total: 2100}},
		providertest.Say("THE NOTE"), providertest.Say("two"))
	script = b.provider
	h := &host{}
	c := b.start(t, h, protocol.Config{Overrides: map[string]json.RawMessage{"model_provider": json.RawMessage(`"front"`)}})
	for _, text := range []string{"first wish", "second wish " + strings.Repeat("word ", 1500)} {
		turn(t, c, say(text))
	}
	all := b.provider.Requests()
	if len(all) != 3 || asked != 1 {
		t.Fatalf("%d requests, want 3; the list of models was read %d times, want once", len(all), asked)
	}
	inOrder(t, string(all[2].Body), "first wish", "THE NOTE", "second wish")
	if events := strings.Join(h.take(), "\n"); !strings.Contains(events, "summarised") {
		t.Errorf("no event says that the conversation was summarised: %s", events)
	}
}
