package native_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// several is an engine with several providers, "a", "b" and so on, of which each has a key of its own.
type several struct {
	t        *testing.T
	scripts  []*providertest.Server
	home, at string
	engine   *native.Engine
	host     *host
	conv     engine.Conversation
}

// newSeveral makes the engine. The first wire is that of the configured provider.
func newSeveral(t *testing.T, o native.Options, wires ...string) *several {
	t.Helper()
	f := &several{t: t, home: t.TempDir(), at: t.TempDir(), host: &host{exec: allow}}
	var config strings.Builder
	config.WriteString("model = \"m0\"\nmodel_provider = \"a\"\napproval_policy = \"untrusted\"\nsandbox_mode = \"danger-full-access\"\n")
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.home, "SHELL=/bin/bash"}
	for i, wire := range wires {
		name := string(rune('a' + i))
		script := providertest.New()
		t.Cleanup(script.Close)
		f.scripts = append(f.scripts, script)
		fmt.Fprintf(&config, "[model_providers.%s]\nbase_url = %q\nwire_api = %q\nenv_key = \"KEY_%s\"\nrequest_max_retries = 0\nstream_max_retries = 0\n", name, script.BaseURL(), wire, name)
		environ = append(environ, "KEY_"+name+"=secret-of-"+name)
		if i > 0 {
			o.Failover.To = append(o.Failover.To, native.FailoverTo{Provider: name, Model: fmt.Sprintf("m%d", i)})
		}
	}
	write(t, filepath.Join(f.home, "config.toml"), config.String())
	o.CodexHome, o.Environ = f.home, environ
	f.engine = open(t, o)
	f.conv = f.start(f.host)
	return f
}

func (f *several) start(h engine.Host) engine.Conversation {
	f.t.Helper()
	return (&bench{engine: f.engine, cwd: f.at}).start(f.t, h, protocol.Config{})
}

func (f *several) reopened(h engine.Host) engine.Conversation {
	f.t.Helper()
	path := fileOf(f.t, f.engine, f.conv.ID())
	closed(f.t, f.conv)
	return (&bench{engine: f.engine}).resume(f.t, path, protocol.Config{}, h)
}

func (f *several) rerouted() (all []string) {
	f.host.mu.Lock()
	defer f.host.mu.Unlock()
	for _, m := range f.host.events {
		if m, ok := m.(protocol.ModelReroute); ok {
			all = append(all, fmt.Sprintf("%s/%s > %s/%s", m.FromProvider, m.FromModel, m.ToProvider, m.ToModel))
		}
	}
	return all
}

func limited(seconds int) providertest.Turn {
	return providertest.Turn{Repeat: true, Status: 429, Body: fmt.Sprintf(`{"error":{"type":"usage_limit_reached","resets_in_seconds":%d}}`, seconds)}
}

// refusals are what a provider may refuse with, by the wire.
func refusals(wire string) map[string]providertest.Turn {
	busy := `data: {"choices":[{"delta":{"content":"half a se"}}]}` + "\n\n" + `data: {"error":{"code":"rate_limit_exceeded","message":"no room"}}` + "\n\n"
	half := `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"h","function":{"name":"shell","arguments":"{\"command\":[\"touch\",\"half"}}]}}]}` + "\n\n" +
		`data: {"error":{"type":"overloaded_error","message":"no room"}}` + "\n\n"
	thought := `data: {"choices":[{"delta":{"reasoning":"half a thought"}}]}` + "\n\n" + `data: {"error":{"code":"rate_limit_exceeded","message":"no room"}}` + "\n\n"
	sent := `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"h","function":{"name":"shell","arguments":"{\"command\":[\"touch\",\"half\"]}"}}]},"finish_reason":"tool_calls"}]}` + "\n\n" +
		`data: {"error":{"type":"overloaded_error","message":"no room"}}` + "\n\n"
	if wire == "responses" {
		failed := `data: {"type":"response.failed","response":{"error":{"code":%q,"message":"no room"}}}` + "\n\n"
		busy = `data: {"type":"response.output_text.delta","delta":"half a se"}` + "\n\n" + fmt.Sprintf(failed, "rate_limit_exceeded")
		half = `data: {"type":"response.function_call_arguments.delta","delta":"{\"command\":[\"touch\",\"half"}` + "\n\n" + fmt.Sprintf(failed, "server_is_overloaded")
		thought = `data: {"type":"response.reasoning_summary_text.delta","delta":"half a thought"}` + "\n\n" + fmt.Sprintf(failed, "rate_limit_exceeded")
		sent = `data: {"type":"response.output_item.done","item":{"type":"function_call","id":"f","call_id":"h","name":"shell","arguments":"{\"command\":[\"touch\",\"half\"]}"}}` + "\n\n" + fmt.Sprintf(failed, "server_is_overloaded")
	}
	return map[string]providertest.Turn{
		"usage limit":  limited(3600),
		"no quota":     {Repeat: true, Status: 429, Body: `{"error":{"type":"insufficient_quota","message":"pay"}}`},
		"key refused":  {Repeat: true, Status: 401, Body: `{"error":{"message":"no"}}`},
		"no credit":    {Repeat: true, Status: 402, Body: `{}`},
		"overloaded":   {Repeat: true, Status: 503, Body: `{}`},
		"in a text":    {Repeat: true, Body: busy},
		"in arguments": {Repeat: true, Body: half},
		"in reasoning": {Repeat: true, Body: thought},
		"after a call": {Repeat: true, Body: sent},
	}
}

// TestFailover has the first provider refuse each of the requests of a turn, in each way. Another one
// finishes the turn: each command runs once, the next provider reads what was done, and nothing that
// is the first one's alone. Unless whole, each way is played at one request, with the next provider on one wire.
func TestFailover(t *testing.T) {
	t.Parallel()
	wires := [][]string{{"chat", "chat"}, {"responses", "chat"}, {"chat", "responses"}, {"responses", "responses"}}
	for at, wire := range wires {
		all := refusals(wire[0])
		for i, name := range slices.Sorted(maps.Keys(all)) {
			refusal := all[name]
			for n := range 3 {
				if !*whole && (i%2 != at/2 || (i/2+at)%3 != n) {
					continue
				}
				t.Run(fmt.Sprintf("%s to %s/%s/%d", wire[0], wire[1], name, n), func(t *testing.T) {
					t.Parallel()
					f := newSeveral(t, native.Options{}, wire...)
					script := []providertest.Turn{
						providertest.Call(providertest.Shell("1", "sh", "-c", "echo >> one")),
						providertest.Call(providertest.Shell("2", "sh", "-c", "echo >> two")),
						providertest.Say("done"),
					}
					for i := range script {
						script[i].Reasoning = []string{"a thought"}
					}
					f.scripts[0].Add(slices.Concat(script[:n], []providertest.Turn{refusal})...)
					f.scripts[1].Add(script[n:]...)
					turn(t, f.conv, say("go"))
					for _, file := range []string{"one", "two"} {
						must.Equal(t, file, "\n", read(t, filepath.Join(f.at, file)))
					}
					if _, err := os.Stat(filepath.Join(f.at, "half")); err == nil {
						t.Error("half a call ran")
					}
					must.Equal(t, "reroutes", []string{"a/m0 > b/m1"}, f.rerouted())
					must.Equal(t, "questions, one for each command", 2, f.host.asked)
					inOrder(t, read(t, fileOf(t, f.engine, f.conv.ID())), `"type":"model_reroute"`)
					for _, script := range f.scripts {
						validRequests(t, script)
					}
					first := f.scripts[1].Requests()[0]
					must.Equal(t, "results that the next provider reads", n, len(first.ToolOutputs()))
					text := string(first.Body) + fmt.Sprint(first.Header)
					for _, foreign := range []string{"secret-of-a", "a thought", "half a se", "encrypted_content"} {
						without(t, strings.ReplaceAll(text, `"reasoning.encrypted_content"`, ""), foreign)
					}
					if got := first.Header.Get("Authorization"); got != "Bearer secret-of-b" || first.Model() != "m1" {
						t.Errorf("the next provider gets %s, model %s", got, first.Model())
					}
					must.Equal(t, "last event", "task_complete done", f.host.last())
				})
			}
		}
	}
}

// TestFailoverWithoutKey has no key for the configured provider: nothing is sent there.
func TestFailoverWithoutKey(t *testing.T) {
	f := newSeveral(t, native.Options{}, "chat", "chat")
	change(t, filepath.Join(f.home, "config.toml"), "KEY_a", "KEY_unset")
	f.scripts[1].Add(providertest.Say("done"))
	turn(t, f.start(f.host), say("go"))
	must.Equal(t, "requests", 0, len(f.scripts[0].Requests()))
	must.Equal(t, "reroutes", []string{"a/m0 > b/m1"}, f.rerouted())
}

// TestAllRefuse has every provider refuse: the turn ends with the words of each, after one request to
// each, and the conversation continues once one has room.
func TestAllRefuse(t *testing.T) {
	f := newSeveral(t, native.Options{}, "chat", "responses", "chat")
	for i, script := range f.scripts {
		script.Add(providertest.Turn{Repeat: true, Status: 401, Body: fmt.Sprintf(`{"error":{"message":"no, says %d"}}`, i)})
	}
	err := f.conv.Turn(t.Context(), say("go"))
	if !as[*engine.TurnError](err) {
		t.Fatalf("Turn: %v", err)
	}
	for _, words := range []string{"provider a: ", "says 0", "provider b: ", "says 1", "provider c: ", "says 2"} {
		if strings.Count(err.Error(), words) != 1 {
			t.Errorf("the error has %q not once: %v", words, err)
		}
	}
	for i, script := range f.scripts {
		must.Equal(t, fmt.Sprint("requests of ", i), 1, len(script.Requests()))
		script.Reset(providertest.Say("hello"))
	}
	f.host.take()
	turn(t, f.conv, say("again"))
	must.Equal(t, "reroutes", []string{"c/m2 > a/m0"}, f.rerouted())
	inOrder(t, string(f.scripts[0].Requests()[1].Body), `\n\ngo\n\nagain"`)
}

// TestFailoverBack takes the limits of a provider for what they are: later turns begin elsewhere until
// the limit is over, and then with the first provider again.
func TestFailoverBack(t *testing.T) {
	f := newSeveral(t, native.Options{}, "chat", "chat")
	f.scripts[0].Add(limited(3600))
	for range 2 {
		f.scripts[1].Add(providertest.Say("b"))
	}
	turn(t, f.conv, say("one"))
	turn(t, f.conv, say("two")) // nobody asks the first provider
	must.Equal(t, "requests of the first provider", 1, len(f.scripts[0].Requests()))
	native.EndLimits(f.conv)
	f.scripts[0].Reset(providertest.Say("a"))
	turn(t, f.conv, say("three"))
	must.Equal(t, "reroutes", []string{"a/m0 > b/m1", "a/m0 > b/m1", "b/m1 > a/m0"}, f.rerouted())
}

// TestFailoverWait has a provider ask for a pause: a short one is waited for, a long one is not if
// another provider is left.
func TestFailoverWait(t *testing.T) {
	t.Parallel()
	for pause, want := range map[string]int{"0.05": 0, "3600": 1} {
		f := newSeveral(t, native.Options{}, "chat", "chat")
		change(t, filepath.Join(f.home, "config.toml"), "request_max_retries = 0", "request_max_retries = 1") // of the first
		f.scripts[0].Add(providertest.Turn{Status: 429, Body: "{}", Header: map[string][]string{"Retry-After": {pause}}}, providertest.Say("a"))
		f.scripts[1].Add(providertest.Say("b"))
		turn(t, f.start(f.host), say("go"))
		must.Equal(t, "reroutes after "+pause+" s", want, len(f.rerouted()))
	}
}

// TestFailoverReopened continues the conversation in another process, which begins with the configured
// provider: the file has nothing that only the other one can read.
func TestFailoverReopened(t *testing.T) {
	f := newSeveral(t, native.Options{}, "responses", "responses")
	call := providertest.Call(providertest.Shell("1", "true"))
	call.Reasoning = []string{"of a"}
	f.scripts[0].Add(call, limited(3600))
	other := providertest.Call(providertest.Shell("2", "true"))
	other.Reasoning = []string{"of b"}
	f.scripts[1].Add(other, providertest.Say("done"))
	turn(t, f.conv, say("go"))
	inOrder(t, string(f.scripts[1].Requests()[1].Body), "of b") // its own reasoning
	f.scripts[0].Reset(providertest.Say("hello"))
	turn(t, f.reopened(&host{}), say("more"))
	requests := f.scripts[0].Requests()
	last := requests[len(requests)-1]
	if text := string(last.Body); strings.Contains(text, "of b") || !strings.Contains(text, "of a") || len(last.ToolOutputs()) != 2 || !strings.Contains(text, "done") {
		t.Errorf("the configured provider reads: %s", text)
	}
}

// TestFailoverInterrupted interrupts the turn while the next provider is asked: no other one is.
func TestFailoverInterrupted(t *testing.T) {
	f := newSeveral(t, native.Options{}, "chat", "chat", "chat")
	wait := make(chan struct{})
	defer close(wait)
	f.scripts[0].Add(limited(0))
	f.scripts[1].Add(providertest.Turn{Wait: wait})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = f.scripts[1].Await(t.Context(), 1)
		cancel()
	}()
	if err := f.conv.Turn(ctx, say("go")); !as[*engine.AbortError](err) {
		t.Errorf("Turn: %v", err)
	}
	must.Equal(t, "requests of the third provider", 0, len(f.scripts[2].Requests()))
}

// TestFailoverOptions has settings that are refused, and providers that are left out.
func TestFailoverOptions(t *testing.T) {
	for want, failover := range map[string]native.Failover{
		"native: failover.to[0]: it needs a provider and a model": {To: []native.FailoverTo{{Provider: "x"}}},
	} {
		_, err := native.New(&native.Options{CodexHome: t.TempDir(), Failover: failover})
		if err == nil || err.Error() != want {
			t.Errorf("New: %v, want %s", err, want)
		}
	}
	f := newSeveral(t, native.Options{}, "chat")
	_, err := f.engine.Start(t.Context(), protocol.Config{Cwd: f.at, Overrides: protocol.Overrides{"failover": map[string]any{"to": []any{}}}}, f.host)
	if !as[*engine.ConfigError](err) {
		t.Errorf("a call chose the providers: %v", err)
	}
	f = newSeveral(t, native.Options{Failover: native.Failover{To: []native.FailoverTo{{Provider: "missing", Model: "m"}, {Provider: "openai", Model: "without a key"}, {Provider: "a", Model: "m0"}}}}, "chat")
	f.scripts[0].Add(limited(0))
	if err := f.conv.Turn(t.Context(), say("go")); err == nil || strings.Contains(err.Error(), "missing") || len(f.scripts[0].Requests()) != 1 {
		t.Errorf("Turn: %v after %d requests", err, len(f.scripts[0].Requests()))
	}
}

// TestOtherProvidersReasoning continues a conversation that another program had with a provider, with
// the same one or another: reasoning is sent to its own provider only.
func TestOtherProvidersReasoning(t *testing.T) {
	for provider, want := range map[string]bool{"a": true, "openai": false} {
		f := newSeveral(t, native.Options{}, "responses")
		call := providertest.Call(providertest.Shell("1", "true"))
		call.Reasoning = []string{"a thought"}
		f.scripts[0].Add(call, providertest.Say("done"), providertest.Say("again"))
		turn(t, f.conv, say("go"))
		path := fileOf(t, f.engine, f.conv.ID())
		change(t, path, `"cli_version":`, fmt.Sprintf(`"model_provider":%q,"cli_version":`, provider))
		turn(t, f.reopened(f.host), say("more"))
		last := f.scripts[0].Requests()[2]
		if got := strings.Contains(string(last.Body), "a thought"); got != want || len(last.ToolOutputs()) != 1 {
			t.Errorf("of %s: the provider reads the reasoning: %t: %s", provider, got, last.Body)
		}
	}
}
