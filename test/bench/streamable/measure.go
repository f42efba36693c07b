package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// text is what the tool repeats.
var text = strings.Repeat("The quick brown fox. ", 8)

// client sends requests to a server, in a session of its own if the server has sessions.
type client struct {
	http    *http.Client
	url     string
	session string
}

const version = "2025-11-25"

// open begins a session.
func open(h *http.Client, url string) *client {
	c := &client{http: h, url: url}
	answer := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`, nil)
	drain(answer, `"protocolVersion"`)
	if c.session = answer.Header.Get("Mcp-Session-Id"); c.session == "" {
		check(fmt.Errorf("no session: %s", answer.Status))
	}
	drain(c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil), "")
	return c
}

func (c *client) post(body string, more map[string]string) *http.Response {
	r := must(http.NewRequest(http.MethodPost, c.url, strings.NewReader(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
		r.Header.Set("Mcp-Protocol-Version", version)
	}
	for name, value := range more {
		r.Header.Set(name, value)
	}
	return must(c.http.Do(r))
}

// drain reads a response and checks that it contains part.
func drain(answer *http.Response, part string) {
	body := must(io.ReadAll(answer.Body))
	answer.Body.Close()
	if answer.StatusCode/100 != 2 || !strings.Contains(string(body), part) {
		check(fmt.Errorf("%s: %s", answer.Status, body))
	}
}

var call = `"name":"echo","arguments":{"text":"` + text + `"}`

// do performs the work once.
func (c *client) do(work string) {
	switch work {
	case "ping":
		drain(c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, nil), `"result"`)
	case "list":
		drain(c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, nil), `"echo"`)
	case "call":
		drain(c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+call+`}}`, nil), text)
	case "today":
		drain(c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+call+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
			map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo"}), text)
	default:
		check(fmt.Errorf("unknown work %q", work))
	}
}

// site is a peer that is being served.
type site struct {
	server  *httptest.Server
	clients []*client
	took    []float64 // µs per request, of each sample
}

func measure(chosen []peer, work string, clients, samples int, span time.Duration) {
	sites := make([]*site, len(chosen))
	for i, p := range chosen {
		s := &site{server: httptest.NewServer(p.serve(work == "today"))}
		defer s.server.Close()
		h := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
		for range clients {
			c := &client{http: h, url: s.server.URL}
			if work != "today" {
				c = open(h, s.server.URL)
			}
			s.clients = append(s.clients, c)
		}
		s.sample(work, span/10) // warm up
		sites[i] = s
	}
	for range samples {
		for _, s := range sites {
			s.took = append(s.took, s.sample(work, span))
		}
	}
	medians := make([]float64, len(chosen))
	for i, s := range sites {
		slices.Sort(s.took)
		medians[i] = s.took[len(s.took)/2]
	}
	row(work+", µs", clients, chosen, medians)
}

// sample repeats the work for span and returns the time per request in µs.
func (s *site) sample(work string, span time.Duration) float64 {
	runtime.GC()
	var done atomic.Int64
	var running sync.WaitGroup
	start := time.Now()
	for _, c := range s.clients {
		running.Go(func() {
			for time.Since(start) < span {
				c.do(work)
				done.Add(1)
			}
		})
	}
	running.Wait()
	return float64(time.Since(start).Microseconds()) / float64(done.Load())
}

// idle opens sessions and measures their memory.
func idle(chosen []peer, sessions int) {
	held := make([]float64, len(chosen))
	for i, p := range chosen {
		server := httptest.NewServer(p.serve(false))
		h := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
		open(h, server.URL)
		before := memory()
		for range sessions {
			open(h, server.URL)
		}
		held[i] = float64(memory()-before) / float64(sessions) / 1024
		server.CloseClientConnections()
	}
	row("idle, KiB per session", sessions, chosen, held)
}

// memory returns the bytes in use, including stacks. It collects several times, because each
// collection shrinks the stacks of waiting goroutines.
func memory() uint64 {
	for range 8 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
