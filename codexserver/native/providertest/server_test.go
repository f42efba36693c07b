package providertest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// post sends a request and returns the status of the answer and the part of its body that arrived.
func post(t *testing.T, url, body string) (status int, text string, err error) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

func TestScript(t *testing.T) {
	p := providertest.New(
		providertest.Turn{Match: "special", Text: []string{"for the special one"}},
		providertest.Say("first"),
		providertest.Turn{Repeat: true, Text: []string{"again"}, Match: "again"},
		providertest.Turn{Status: 503, Body: "busy", Header: http.Header{"Retry-After": {"1"}}},
		providertest.Turn{Body: "data: raw\n\n"},
	)
	defer p.Close()
	for _, tt := range []struct {
		body, want string
		status     int
	}{
		{`{"x":"one"}`, `"content":"first"`, 200},
		{`{"x":"special"}`, "for the special one", 200},
		{`{"x":"again"}`, `"content":"again"`, 200},
		{`{"x":"again"}`, `"content":"again"`, 200},
		{`{}`, "busy", 503},
		{`{}`, "data: raw\n\n", 200},
		{`{}`, "the script has no turn", 400},
	} {
		status, got, err := post(t, p.BaseURL()+"/chat/completions", tt.body)
		if err != nil || status != tt.status || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %d %q %v, want %d %q", tt.body, status, got, err, tt.status, tt.want)
		}
	}
	must.Equal(t, "requests", 7, len(p.Requests()))
}

func TestCloseEndsWaitingRequests(t *testing.T) {
	for _, turn := range []providertest.Turn{
		{Wait: make(chan struct{})},
		{Text: []string{"x"}, Stall: make(chan struct{})},
	} {
		p := providertest.New(turn)
		done := make(chan error)
		go func() {
			_, _, err := post(t, p.BaseURL()+"/chat/completions", "{}")
			done <- err
		}()
		must.OK(t, p.Await(t.Context(), 1))
		p.Close()
		if err := <-done; err == nil {
			t.Error("the answer looks complete")
		}
	}
}

func TestRequestsAreReadOnEitherWire(t *testing.T) {
	p := providertest.New(providertest.Turn{Repeat: true})
	defer p.Close()
	for path, body := range map[string]string{
		"/chat/completions": `{"model":"m","messages":[{"role":"user","content":"q"},{"role":"tool","tool_call_id":"c","content":"{\"output\":\"out\",\"metadata\":{}}"},` +
			`{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"x"}}]}]}`,
		"/responses": `{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"look"}]},` +
			`{"type":"function_call_output","call_id":"c","output":"{\"output\":\"out\",\"metadata\":{}}"}]}`,
	} {
		if _, _, err := post(t, p.BaseURL()+path, body); err != nil {
			t.Fatal(err)
		}
		all := p.Requests()
		r := all[len(all)-1]
		got := []string{r.Path, r.Model(), r.LastUserText(), r.LastToolOutput(), r.ToolOutputs()[0].CallID}
		must.Equal(t, "result", []string{"/v1" + path, "m", "look", "out", "c"}, got)
	}
}
