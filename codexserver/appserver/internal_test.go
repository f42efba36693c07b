package appserver

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

// TestTail writes more than is kept, and asks for the reason of the end, which stands among lines of the app-server and of
// programs that it started.
func TestTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := &tail{log: slog.New(slog.DiscardHandler)}
		write := func(text string) {
			if n, err := words.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("wrote %d bytes, %v", n, err)
			}
		}
		var writing sync.WaitGroup
		for range 2 {
			writing.Go(func() {
				for range 100 {
					write("line\n")
				}
				write("Error: old\n")
			})
		}
		writing.Wait()
		for range 3 {
			write(strings.Repeat("x", 3000))
		}
		must.Equal(t, "a line without end", 4096, len(words.part))
		write("\nError: sk-1234567890 ")
		write("is wrong\n")
		for i := range 6 {
			write(fmt.Sprintf("\x1b[31m%d\x1b[0m\n \n", i))
		}
		const want = "Error: [redacted] is wrong 0 1 2 3"
		for after, want := range map[time.Duration]string{5 * time.Second: want, 5*time.Second + 1: ""} {
			must.Equal(t, fmt.Sprintf("%v later", after), want, words.last(time.Now().Add(after)))
		}
	})
	for name, tt := range map[string][2]string{ // what is written among other lines, and what is found
		"an error":     {"WARN x\nError: no such file\n\nCaused by:\n    it is gone\n", "Error: no such file Caused by: it is gone"},
		"a panic":      {"\nthread 'main' panicked at src/main.rs:1:2:\nboom\n", "thread 'main' panicked at src/main.rs:1:2: boom"},
		"a wrong flag": {"error: unexpected argument '-x'", "error: unexpected argument '-x'"},
		"a secret":     {"Error: the key sk-abcdefghij is wrong\n", "Error: the key [redacted] is wrong"},
		"without end":  {"Error: the key sk-abcdefghij is wrong", "Error: the key [redacted] is wrong"},
		"a log line":   {"2026-01-01T00:00:00Z ERROR codex: a tool of a server failed\n", ""},
		"of a server":  {"listening on port 7\n", ""},
		"nothing":      {"", ""},
	} {
		words := &tail{log: slog.New(slog.DiscardHandler)}
		_, _ = words.Write([]byte(tt[0])) // never fails
		must.Equal(t, name, tt[1], words.last(time.Now()))
	}
}

// TestThreads checks which threads belong to a conversation.
func TestThreads(t *testing.T) {
	l := &child{threads: map[string]*thread{}}
	one, two := l.load("one", &news{}), l.load("two", &news{})
	if l.load("one", &news{}) != one || one == two {
		t.Error("a conversation has two threads")
	}
	announce := func(t *thread, id, path string) {
		t.announced(&apptypes.Note{Item: &apptypes.Item{Type: apptypes.ThreadItemSubAgentActivity, AgentThreadID: id, AgentPath: path}})
	}
	announce(one, "a", "/root/a")
	announce(one, "b", "")
	announce(two, "a", "/root/other") // known
	announce(two, "one", "/root/one")
	announce(two, "", "/root/none")
	check := func(when string, want map[string]*thread) {
		t.Helper()
		for _, id := range []string{"one", "two", "a", "b", "", "other"} {
			var root *thread
			if got, _ := l.find(id); got != nil {
				root = got.root
			}
			if root != want[id] {
				t.Errorf("%s, %q belongs to %v", when, id, root)
			}
		}
	}
	check("at first", map[string]*thread{"one": one, "two": two, "a": one, "b": one})
	for id, want := range map[string]string{"a": "/root/a", "b": "b", "one": ""} {
		got, _ := l.find(id)
		must.Equal(t, id+" is at", want, got.agent)
	}
	agent, _ := l.find("b")
	announce(agent, "c", "/root/b/c") // a sub-agent's
	a := l.load("a", &news{})         // now a conversation
	check("loaded", map[string]*thread{"one": one, "two": two, "a": a, "b": one, "c": one})
}

// TestFaults has an error of Codex in which several are, of which the first advice is given, and an unknown one.
func TestFaults(t *testing.T) {
	err := told(`failed to load configuration: wire_api = "chat", legacy ` + "`profile")
	if !errors.Is(err, errConfiguration) || strings.Count(err.Error(), "; ") != 1 || !strings.HasSuffix(err.Error(), faults[1].write) {
		t.Errorf("several: %v", err)
	}
	if err := told("another"); err.Error() != "another" || errors.Is(err, errConfiguration) {
		t.Errorf("an unknown one: %v", err)
	}
}

// TestKeys merges configurations as Codex does, takes keys out of one, and writes the result for Codex.
func TestKeys(t *testing.T) {
	for name, tt := range map[string]struct{ k, over, with, without string }{
		"nothing":             {`{}`, `{}`, `{}`, `{}`},
		"tables":              {`{"t":{"a":1,"b":{"c":2}}}`, `{"t":{"b":{"d":3}}}`, `{"t.a":1,"t.b.c":2,"t.b.d":3}`, `{"t.a":1,"t.b.c":2}`},
		"dotted":              {`{"t.a":1,"t":{"b":2}}`, `{"t.a":3}`, `{"t.a":3,"t.b":2}`, `{"t.b":2}`},
		"a value for a table": {`{"t":{"a":1},"x":1}`, `{"t":2,"x":{"y":1}}`, `{"t":2,"x.y":1}`, `{}`},
		"null":                {`{"t":{"a":{"b":1},"x":1}}`, `{"t":{"a":null,"x":null}}`, `{"t.a.b":1,"t.x":null}`, `{}`},
		"names with dots":     {`{"t":{"a.b":{"c":1},"d":{"e":2}}}`, `{"t":{"d":{"on":false}}}`, `{"t":{"a.b":{"c":1},"d":{"e":2,"on":false}}}`, `{"t":{"a.b":{"c":1},"d":{"e":2}}}`},
		"numbers":             {`{"n":{"a":9223372036854775807,"l":[1.5]}}`, `{}`, `{"n.a":9223372036854775807,"n.l":[1.5]}`, `{"n.a":9223372036854775807,"n.l":[1.5]}`},
		"empty":               {`{"t":{}}`, `{"t":{"a":{}}}`, `{"t.a":{}}`, `{}`},
	} {
		read := func(text string) keys {
			var dotted protocol.Overrides
			must.OK(t, json.Unmarshal([]byte(text), &dotted))
			return must.Get(config.Unflatten(dotted))(t)
		}
		k, over := read(tt.k), read(tt.over)
		for want, got := range map[string]keys{tt.with: k.with(over), tt.without: k.without(over), dottedText(t, k): read(tt.k)} {
			must.Equal(t, name, want, dottedText(t, got))
		}
	}
}

// TestEndpointWithNaN compares two providers that differ behind a number that JSON does not have, and TOML does.
func TestEndpointWithNaN(t *testing.T) {
	of := func(url string) string {
		_, endpoint := provides(at(map[string]any{"a": math.NaN(), "query_params": url}, providersTable, "p"), "p")
		return endpoint
	}
	must.Equal(t, "the same", of("x"), of("x"))
	must.Equal(t, "others are the same", false, of("x") == of("y"))
	var v any
	must.Equal(t, "it is no JSON", true, at(math.NaN(), "a").read(&v, "a") != nil)
}

func dottedText(t *testing.T, k keys) string {
	t.Helper()
	text := must.Get(json.Marshal(k.dotted(), json.Deterministic(true)))(t)
	return string(text)
}
