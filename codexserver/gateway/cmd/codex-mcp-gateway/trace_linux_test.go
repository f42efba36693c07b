package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/natstest"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/nats-io/nats-server/v2/server"
)

// sentSpan is a span as a collector decodes it.
type sentSpan struct {
	TraceID  string `json:"traceId"`
	ID       string `json:"spanId"`
	ParentID string `json:"parentSpanId"`
	Name     string `json:"name"`
}

// sentSpans decodes what a process has sent at once.
func sentSpans(t *testing.T, body []byte) (all []sentSpan) {
	t.Helper()
	var request struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []sentSpan `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		t.Error(err)
	}
	for _, r := range request.ResourceSpans {
		for _, s := range r.ScopeSpans {
			all = append(all, s.Spans...)
		}
	}
	return all
}

// TestEndToEndTrace sends calls to a front, which passes them to a node in another process, and
// reads the traces of both at a collector.
func TestEndToEndTrace(t *testing.T) {
	enclosuretest.Need(t)
	var mu sync.Mutex
	var sent []string
	var spans []sentSpan
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		got := sentSpans(t, body)
		for _, s := range got {
			if (s.Name == "front") != (got[0].Name == "front") {
				t.Errorf("a process has the spans of a front and of a node: %+v", got)
			}
		}
		sent, spans = append(sent, string(body)), append(spans, got...)
	}))
	t.Cleanup(collector.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")

	model := providertest.New(providertest.Turn{Repeat: true, Text: []string{"an-answer"}})
	t.Cleanup(model.Close)
	n := natstest.Start(t, server.Options{ServerName: "n", JetStream: true})
	c := &cluster{t: t, top: boxtest.Outside(t)}
	token, hash := access.NewToken()
	link := linked(t)
	if err := os.Mkdir(filepath.Join(c.top, "ann"), 0o700); err != nil {
		t.Fatal(err)
	}
	var front *httpServer
	for _, role := range []string{"node", "front"} {
		f := folders{home: filepath.Join(c.top, "server-"+role), cwd: c.top, user: c.top + "/user"}
		for _, dir := range []string{f.home, f.user} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for file, text := range map[string]string{
			"codex-mcp.toml":         fmt.Sprintf("[http.principals.ann]\ntokens = [%q]\nfolders = [%q]\n", hash, c.top+"/ann"),
			"codex-mcp-gateway.toml": fmt.Sprintf("link = %s\n[nats]\nurl = %q\nroles = [%q]\n", link, n.ClientURL(), role),
		} {
			if err := os.WriteFile(filepath.Join(f.home, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		front = c.launch(f, model, nil)
		until(t, "the "+role+" does not start", func() bool {
			_, rest, _ := strings.Cut(front.errors(), "serving MCP at ")
			front.url, _, _ = strings.Cut(rest, mcpPath+";")
			return front.url != "" || strings.Contains(front.errors(), "running workers")
		})
	}

	const (
		inMeta   = "00-11111111111111111111111111111111-2222222222222222-01"
		inHeader = "00-33333333333333333333333333333333-4444444444444444-01"
		hostile  = "00-ffffffffffffffffffffffffffffffff-secret-of-the-client-01"
	)
	for i, tt := range []struct {
		name          string
		meta          string
		headers       []string
		trace, parent string // "" is any, and none
	}{
		{"_meta", inMeta, nil, inMeta[3:35], inMeta[36:52]},
		{"a header", "", []string{inHeader}, inHeader[3:35], inHeader[36:52]},
		{"both", inMeta, []string{inHeader}, inMeta[3:35], inMeta[36:52]},
		{"both, of the same trace", inMeta, []string{inMeta[:36] + "5555555555555555-01"}, inMeta[3:35], inMeta[36:52]},
		{"a hostile _meta", hostile, []string{inHeader}, inHeader[3:35], inHeader[36:52]},
		{"all hostile", hostile, []string{hostile}, "", ""},
		{"none", "", nil, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mu.Lock()
			spans = nil
			mu.Unlock()
			meta := ""
			if tt.meta != "" {
				meta = `"traceparent":"` + tt.meta + `",`
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.url+mcpPath, strings.NewReader(
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"a-prompt"},"_meta":{`+meta+
					`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
			if err != nil {
				t.Fatal(err)
			}
			for header, value := range map[string]string{
				"Authorization": "Bearer " + token, "Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "codex",
			} {
				r.Header.Set(header, value)
			}
			r.Header["Traceparent"] = tt.headers
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), "an-answer") {
				t.Fatalf("call %d: %s %s %v", i, answer.Status, text, err)
			}
			chain := []string{"front", "node", "tools/call codex", "turn", "model_request"}
			byName := map[string]sentSpan{}
			until(t, "spans are missing", func() bool {
				mu.Lock()
				defer mu.Unlock()
				for _, s := range spans {
					byName[s.Name] = s
				}
				return len(byName) >= len(chain)
			})
			if len(byName) != len(chain) {
				t.Errorf("spans: %+v", byName)
			}
			parent, trace := tt.parent, tt.trace
			if trace == "" {
				trace = byName["front"].TraceID
			}
			for _, name := range chain {
				s := byName[name]
				if s.ParentID != parent || s.TraceID != trace {
					t.Errorf("%s: trace %s, parent %s; want %s, %s", name, s.TraceID, s.ParentID, trace, parent)
				}
				parent = s.ID
			}
		})
	}
	mu.Lock()
	defer mu.Unlock()
	for _, secret := range []string{"a-prompt", "an-answer", "secret-of-the-client", token} {
		if strings.Contains(strings.Join(sent, ""), secret) {
			t.Errorf("the traces have %q", secret)
		}
	}
}
