package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// provider plays what the newest prompt asks for, see turnOf. A scripted provider keeps all
// its requests, so it is replaced regularly.
type provider struct {
	http *httptest.Server

	mu      sync.Mutex
	current *providertest.Server
	served  int
	closing sync.WaitGroup
}

// fresh is how many requests one scripted provider serves.
const fresh = 500

func newProvider() *provider {
	p := &provider{current: providertest.New(script)}
	p.http = httptest.NewServer(p)
	return p
}

func (p *provider) url() string { return p.http.URL + "/v1" }

// ServeHTTP implements [http.Handler].
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if p.served++; p.served%fresh == 0 {
		old := p.current
		p.current = providertest.New(script)
		p.closing.Go(old.Close) // it waits for what it serves
	}
	s := p.current
	p.mu.Unlock()
	s.ServeHTTP(w, r)
}

func (p *provider) close() {
	p.http.CloseClientConnections()
	p.http.Close()
	p.closing.Wait()
	p.current.Close()
}

var script = providertest.Turn{Repeat: true, Func: turnOf}

// commands are the model's commands by the prompt's word.
var commands = map[string][]string{
	"run":     {"echo", "hello"},
	"ask":     {"touch", "asked"},
	"sleep":   {"sleep", "600"},
	"late":    {"sleep", "600"},
	"daemon":  {"sh", "-c", "(setsid sleep 600 > /dev/null 2>&1 &)"},
	"kill":    {"sh", "-c", "kill -KILL $$"},
	"orphan":  {"sh", "-c", "kill -KILL $PPID; sleep 600"}, // kills its keeper
	"stopped": {"sh", "-c", "kill -STOP $PPID; sleep 600"},
	"output":  {"sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x"},
}

// turnOf returns the turn for the prompt "word number".
func turnOf(r providertest.Request) providertest.Turn {
	word, number, _ := strings.Cut(r.LastUserText(), " ")
	id := "call_" + number
	if argv := commands[word]; argv != nil {
		if slices.ContainsFunc(r.ToolOutputs(), func(o providertest.ToolOutput) bool { return o.CallID == id }) {
			return providertest.Say("done")
		}
		arguments := map[string]any{"command": argv}
		if word == "late" {
			arguments["timeout_ms"] = 300
		}
		return providertest.Call(providertest.Tool(id, "shell", arguments))
	}
	never := make(chan struct{}) // until the client disconnects
	switch word {
	case "say":
		return providertest.Turn{Text: slices.Repeat([]string{"hello "}, 40)}
	case "long":
		return providertest.Turn{Text: slices.Repeat([]string{strings.Repeat("x", 100)}, 2000)}
	case "refuse":
		status := []int{400, 401, 404, 429, 500, 503}[rand.IntN(6)]
		return providertest.Turn{Status: status,
			Body: fmt.Sprintf(`{"error":{"message":"status %d for a test"}}`, status)}
	case "torn":
		return providertest.Turn{Text: slices.Repeat([]string{"hello "}, 40), TruncateAt: 1 + rand.IntN(4000)}
	case "cut":
		return providertest.Turn{Text: []string{"hel"}, Truncate: true}
	case "garbage":
		return providertest.Turn{Body: "data: {\"choices\": nonsense\n\n"}
	case "fail":
		return providertest.Turn{Text: []string{"hel"},
			Failed: &providertest.Failure{Code: "server_error", Message: "it rains"}}
	case "stall":
		return providertest.Turn{Text: []string{"hel"}, Stall: never}
	case "hang":
		return providertest.Turn{Wait: never}
	}
	return providertest.Say("what?")
}
