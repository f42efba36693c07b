package native_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// cannedProvider is a provider without a network that sends the same stream for every
// request and counts the bytes of the last one.
type cannedProvider struct {
	stream string
	bytes  int64
}

func (c *cannedProvider) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet { // the list of models
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return nil, err
	}
	c.bytes = n
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.stream)), Request: r}, nil
}

// silentHost is a host that drops every event.
type silentHost struct{ host }

func (*silentHost) Emit(protocol.EventMsg) {}

func (*silentHost) EmitAs(string, protocol.EventMsg) {}

func benchEngine(b *testing.B, wire string, provider http.RoundTripper) engine.Conversation {
	b.Helper()
	home := b.TempDir()
	config := fmt.Sprintf("model = \"m\"\nmodel_provider = \"p\"\n[model_providers.p]\nbase_url = \"http://provider.test\"\nwire_api = %q\n", wire)
	write(b, filepath.Join(home, "config.toml"), config)
	e := open(b, native.Options{CodexHome: home, HTTPClient: &http.Client{Transport: provider}})
	return (&bench{engine: e, cwd: home}).start(b, &silentHost{}, protocol.Config{})
}

func stream(wire string, pieces int, piece string) string {
	var s strings.Builder
	if wire == "chat" {
		for range pieces {
			fmt.Fprintf(&s, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":null}]}\n\n", piece)
		}
		s.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		return s.String()
	}
	for range pieces {
		fmt.Fprintf(&s, "data: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"delta\":%q}\n\n", piece)
	}
	fmt.Fprintf(&s, "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":%q}]}}\n\n",
		strings.Repeat(piece, pieces))
	s.WriteString("data: {\"type\":\"response.completed\",\"response\":{}}\n\n")
	return s.String()
}

// point is the fastest turn and the longest request of some turns.
type point struct {
	took  time.Duration
	bytes int64
}

func (p *point) add(took time.Duration, bytes int64) {
	if p.took == 0 || took < p.took {
		p.took = took
	}
	p.bytes = max(p.bytes, bytes)
}

// BenchmarkLongConversation runs conversations of 500 turns. It reports the time and the
// request size of the last turns, relative to turn 50, and the live heap relative to the
// history.
func BenchmarkLongConversation(b *testing.B) {
	const turns, early, sample = 500, 50, 25
	for _, wire := range []string{"chat", "responses"} {
		b.Run(wire, func(b *testing.B) {
			provider := &cannedProvider{stream: stream(wire, 100, strings.Repeat("word ", 16))}
			question := say(strings.Repeat("why? ", 400))
			var slower, longer, heap float64
			var plot [turns / early]point
			for b.Loop() {
				before := liveHeap()
				c := benchEngine(b, wire, provider)
				first, last := time.Hour, time.Hour // the fastest: in others, other processes took time
				var firstBytes int64
				for n := 1; n <= turns; n++ {
					begin := time.Now()
					if err := c.Turn(b.Context(), question); err != nil {
						b.Fatal(err)
					}
					took := time.Since(begin)
					plot[(n-1)/early].add(took, provider.bytes)
					switch {
					case n > early-sample && n <= early:
						first = min(first, took)
						firstBytes = provider.bytes
					case n > turns-sample:
						last = min(last, took)
					}
				}
				slower = float64(last) / float64(first)
				longer = float64(provider.bytes) / float64(firstBytes)
				heap = float64(liveHeap()-before) / float64(provider.bytes)
				runtime.KeepAlive(c)
			}
			for i, p := range plot {
				b.Logf("%4d %6.1f MB %6.1f ms |%s", (i+1)*early, float64(p.bytes)/1e6, p.took.Seconds()*1e3, strings.Repeat("#", int(p.took/(250*time.Microsecond))))
			}
			b.ReportMetric(slower, "time-ratio")
			b.ReportMetric(longer, "bytes-ratio")
			b.ReportMetric(heap, "heap/history")
		})
	}
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkStream reads an answer of 5,000 pieces.
func BenchmarkStream(b *testing.B) {
	const pieces = 5000
	for _, wire := range []string{"chat", "responses"} {
		b.Run(wire, func(b *testing.B) {
			provider := &cannedProvider{stream: stream(wire, pieces, "word ")}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				c := benchEngine(b, wire, provider) // or the history would grow
				b.StartTimer()
				if err := c.Turn(b.Context(), say("go")); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pieces, "ns/piece")
		})
	}
}
