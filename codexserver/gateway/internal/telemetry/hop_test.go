package telemetry_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/telemetry"
	"github.com/google/go-cmp/cmp"
)

// post returns a request with a body that can be read again.
func post(body string, headers http.Header) *http.Request {
	return &http.Request{Method: http.MethodPost, Header: headers, GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(body))), nil }}
}

const callBody = `{"method":"tools/call","params":{"name":"codex","_meta":{"traceparent":"` + inMeta + `","tracestate":"a=b"}}}`

// TestHops passes requests through a front and a node, which have collectors of their own.
func TestHops(t *testing.T) {
	for _, tt := range []struct {
		name          string
		body          string
		headers       http.Header
		trace, parent string // "" is any, and none
		state         string
		none          bool // there are no spans
	}{
		{name: "_meta", body: callBody, trace: inMeta[3:35], parent: inMeta[36:52], state: "a=b"},
		{name: "_meta before headers", body: callBody, headers: http.Header{"Traceparent": {inHeader}, "Tracestate": {"c=d"}}, trace: inMeta[3:35], parent: inMeta[36:52], state: "a=b"},
		{name: "headers", body: `{"method":"tools/call"}`, headers: http.Header{"Traceparent": {inHeader}, "Tracestate": {"c=d"}}, trace: inHeader[3:35], parent: inHeader[36:52], state: "c=d"},
		{name: "two headers", body: `{"method":"tools/call"}`, headers: http.Header{"Traceparent": {inHeader, inMeta}}},
		{name: "a long state", body: `{"method":"tools/call"}`, headers: http.Header{"Traceparent": {inHeader}, "Tracestate": {"c=" + strings.Repeat("d", 4096)}}},
		{name: "a hostile state", body: `{"method":"tools/call"}`, headers: http.Header{"Traceparent": {inHeader}, "Tracestate": {"a text, and more"}}, trace: inHeader[3:35], parent: inHeader[36:52]},
		{name: "hostile", body: `{"method":"tools/call","params":{"_meta":{"traceparent":{"a":[]}}}}`, headers: http.Header{"Traceparent": {"00-zz-zz-01"}}},
		{name: "another method", body: `{"method":"tools/list"}`, headers: http.Header{"Traceparent": {inHeader}}, none: true},
		{name: "another method in the header", body: callBody, headers: http.Header{"Mcp-Method": {"tasks/get"}, "Traceparent": {inHeader}}, none: true},
		{name: "two methods", body: `{"method":"tools/list","method":"tools/call"}`, none: true},
		{name: "no JSON", body: `{"method":"tools/call"`, none: true},
		{name: "nothing", none: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at, to := newCollector(t, 0), newCollector(t, 0)
			env := func(c *collector) map[string]string {
				return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}
			}
			front, node := newTelemetry(t, env(at)), newTelemetry(t, env(to))
			if tt.headers == nil {
				tt.headers = http.Header{}
			}
			r := post(tt.body, tt.headers)
			first := front.Front(r, "ann")
			second := node.Node(r.Header, "a-node", "ann")
			last := r.Header.Get("Traceparent")
			second.End(200)
			first.End(502)
			for _, tel := range []*telemetry.Telemetry{front, node} {
				if err := tel.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if tt.none {
				if first != nil || second != nil || last != "" || len(at.spans(t))+len(to.spans(t)) > 0 {
					t.Errorf("there are spans, or the headers name one: %q", last)
				}
				return
			}
			f, n := at.spans(t)["front"], to.spans(t)["node"]
			if f.ParentID != tt.parent || tt.trace != "" && f.TraceID != tt.trace || f.TraceState != tt.state || f.Kind != 2 {
				t.Errorf("the front: %+v", f)
			}
			if n.ParentID != f.SpanID || n.TraceID != f.TraceID || n.TraceState != tt.state || !strings.EqualFold(last, "00-"+n.TraceID+"-"+n.SpanID+"-01") {
				t.Errorf("the node: %+v, then %q", n, last)
			}
			if sent := strings.Join(append(at.bodies, to.bodies...), ""); strings.Contains(sent, "a text") || !strings.Contains(sent, "a-node") || strings.Count(sent, "http.response.status_code") != 2 {
				t.Errorf("sent: %s", sent)
			}
		})
	}
}

// TestHopsAreOff checks that a request is as it was if no traces are sent.
func TestHopsAreOff(t *testing.T) {
	tel := newTelemetry(t, nil)
	headers := http.Header{"Traceparent": {"anything"}, "Tracestate": {"at all"}}
	first := tel.Front(post(callBody, headers), "ann")
	second := tel.Node(headers, "a-node", "ann")
	first.End(200)
	second.End(0)
	if diff := cmp.Diff(http.Header{"Traceparent": {"anything"}, "Tracestate": {"at all"}}, headers); diff != "" || first != nil || second != nil {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
