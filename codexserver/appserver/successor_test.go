package appserver_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/google/go-cmp/cmp"
)

// pair is a Codex whose provider refuses, with the native engine that goes on.
type pair struct {
	*fake
	conv    engine.Conversation
	cwd     string
	scripts map[string]*providertest.Server // by the name of the provider
}

// newPair makes a pair. The native engine has the providers to in this order: "none" is not configured,
// "keyless" has no key, and the others are scripted. Codex uses 60 tokens in each turn.
func newPair(t *testing.T, h engine.Host, to ...string) *pair {
	t.Helper()
	p := &pair{cwd: t.TempDir(), scripts: map[string]*providertest.Server{}}
	home, config := t.TempDir(), ""
	failover := setting.Failover{}
	for _, name := range to {
		failover.To = append(failover.To, setting.FailoverTo{Provider: name, Model: "m-" + name})
		if name == "none" {
			continue
		}
		p.scripts[name] = providertest.New()
		t.Cleanup(p.scripts[name].Close)
		config += fmt.Sprintf("[model_providers.%s]\nbase_url = %q\nenv_key = \"KEY_%s\"\nrequest_max_retries = 0\nstream_max_retries = 0\n", name, p.scripts[name].BaseURL(), name)
	}
	writeFile(t, filepath.Join(home, "config.toml"), config)
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "SHELL=/bin/bash", "KEY_b=of-b", "KEY_c=of-c", "KEY_d=of-d"}

	p.fake = newFake(t)
	p.policy, p.config, p.fake.cwd = `"never"`, map[string]any{"sandbox_mode": "danger-full-access"}, p.cwd
	p.rollout = filepath.Join(t.TempDir(), "rollout-"+threadID+".jsonl")
	p.write(`{"type":"session_meta","payload":{"id":%q,"timestamp":"2026-01-01T00:00:00Z","cwd":%q,"originator":"codex_mcp","cli_version":"0.169.0","model_provider":"mock"}}`, threadID, p.cwd)
	used := 0
	p.turn = func(r *run) {
		used += 60
		const count = `{"%s":{"inputTokens":%d,"cachedInputTokens":0,"outputTokens":0,"reasoningOutputTokens":0,"totalTokens":%d},"%s":{"inputTokens":60,"cachedInputTokens":0,"outputTokens":0,"reasoningOutputTokens":0,"totalTokens":60}}`
		r.notify("thread/tokenUsage/updated", `{"threadId":%q,"turnId":%q,"tokenUsage":%s}`, threadID, r.current(), fmt.Sprintf(count, "total", used, used, "last"))
		p.write(`{"type":"event_msg","payload":{"type":"task_started","turn_id":%q}}`, r.current())
		p.write(`{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"total_tokens":%d},"last_token_usage":{"input_tokens":60,"total_tokens":60}}}}`, used, used)
		p.write(`{"type":"event_msg","payload":{"type":"task_complete","turn_id":%q}}`, r.current())
		r.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":"failed","items":[],"error":{"message":"no more","codexErrorInfo":"usageLimitExceeded"}}}`, threadID, r.current())
	}
	e := p.engine(appserver.Options{Failover: failover.Resolved(), Next: func(func() []string) (engine.Resumer, error) {
		return native.New(&native.Options{CodexHome: home, Failover: failover, Environ: environ})
	}})
	p.conv = start(t, e, h)
	t.Cleanup(func() {
		if err := p.conv.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// write appends a line to the rollout, as Codex does.
func (p *pair) write(format string, args ...any) {
	f, err := os.OpenFile(p.rollout, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(f, format+"\n", args...)
	}
	if err != nil || f.Close() != nil {
		p.t.Error(err)
	}
}

// rerouted returns who answered in place of whom.
func rerouted(events []protocol.EventMsg) (all []string) {
	for _, m := range events {
		if m, ok := m.(protocol.ModelReroute); ok {
			all = append(all, fmt.Sprintf("%s > %s %s", m.FromModel, m.ToModel, m.ToEngine))
		}
	}
	return all
}

// keyRefused is the answer of a provider that refuses the key.
func keyRefused(words string) providertest.Turn {
	return providertest.Turn{Repeat: true, Status: 401, Body: fmt.Sprintf(`{"error":{"message":%q}}`, words)}
}

// TestSuccessors has Codex and the first providers refuse: the next one of the list answers, without
// those that cannot be used.
func TestSuccessors(t *testing.T) {
	for _, tt := range []struct {
		to   []string
		want []string
	}{
		{[]string{"b", "c"}, []string{"m > m-b native", "m-b > m-c "}},
		{[]string{"none", "b", "c"}, []string{"m > m-b native", "m-b > m-c "}},
		{[]string{"keyless", "c"}, []string{"m > m-keyless native", "m-keyless > m-c "}},
		{[]string{"b", "none", "keyless", "d", "c"}, []string{"m > m-b native", "m-b > m-d ", "m-d > m-c "}},
	} {
		h := &recorder{}
		p := newPair(t, h, tt.to...)
		for name, script := range p.scripts {
			script.Add(keyRefused("no, says " + name))
		}
		p.scripts["c"].Reset(providertest.Say("done"))
		err := p.conv.Turn(t.Context(), text("go"))
		if err != nil || h.answer() != "done" || h.count("task_started") != 1 || h.count("task_complete") != 1 {
			t.Errorf("%v: %v, %q, events %v", tt.to, err, h.answer(), h.types())
		}
		if d := cmp.Diff(tt.want, rerouted(h.all())); d != "" {
			t.Errorf("%v: reroutes (-want +got):\n%s", tt.to, d)
		}
	}
}

// TestSuccessorsRefuse has Codex and two providers refuse: the turn ends with the words of each, after
// one request to each, and the thread continues.
func TestSuccessorsRefuse(t *testing.T) {
	h := &recorder{}
	p := newPair(t, h, "b", "c")
	for name, script := range p.scripts {
		script.Add(keyRefused("no, says " + name))
	}
	var failed *engine.TurnError
	err := p.conv.Turn(t.Context(), text("go"))
	if !errors.As(err, &failed) || h.count("task_complete") != 1 || h.count("error") != 1 {
		t.Fatalf("%v, events %v", err, h.types())
	}
	for _, words := range []string{"no more", "says b", "says c"} {
		if strings.Count(err.Error(), words) != 1 {
			t.Errorf("%q is not once in %v", words, err)
		}
	}
	for name, script := range p.scripts {
		if n := len(script.Requests()); n != 1 {
			t.Errorf("%s got %d requests", name, n)
		}
		script.Reset(providertest.Say("hello"))
	}
	if err := p.conv.Turn(t.Context(), text("again")); err != nil || h.answer() != "hello" {
		t.Errorf("%v, %q", err, h.answer())
	}
}

// TestSuccessorsUnusable has no provider that can be used: nothing runs, and the words say why.
func TestSuccessorsUnusable(t *testing.T) {
	h := &recorder{}
	err := newPair(t, h, "none").conv.Turn(t.Context(), text("go"))
	if err == nil || !strings.Contains(err.Error(), "no more") || !strings.Contains(err.Error(), "provider none: ") || h.count("task_complete") != 1 {
		t.Errorf("%v, events %v", err, h.types())
	}
}

// TestSuccessorBudget has a budget of tokens of which Codex uses a part: the count of the thread goes
// on, and the command that would run beyond the budget does not.
func TestSuccessorBudget(t *testing.T) {
	for budget, want := range map[int64]bool{100: false, 200: true, 0: true} {
		h := &recorder{}
		p := newPair(t, h, "b")
		p.scripts["b"].Add(providertest.Turn{ToolCalls: []providertest.ToolCall{providertest.Shell("1", "touch", "made")}, Usage: &providertest.Usage{Input: 40, Output: 20, Total: 60}}, providertest.Say("done"))
		in := text("go")
		in.MaxTokens = budget
		err := p.conv.Turn(t.Context(), in)
		_, missing := os.Stat(filepath.Join(p.cwd, "made"))
		if (missing == nil) != want || (err == nil) != want {
			t.Errorf("budget %d: %v, %v", budget, err, missing)
		}
		var counts []int64
		for _, m := range h.all() {
			if m, ok := m.(protocol.TokenCount); ok && m.Info != nil {
				counts = append(counts, m.Info.TotalTokenUsage.TotalTokens)
			}
		}
		if len(counts) < 2 || counts[0] != 60 || counts[1] != 120 {
			t.Errorf("budget %d: counts %v", budget, counts)
		}
	}
}

// TestSuccessorTranscript reads the conversation's file after the server has ended: it says who had
// which part.
func TestSuccessorTranscript(t *testing.T) {
	p := newPair(t, &recorder{}, "b", "c")
	p.scripts["b"].Add(keyRefused("no"))
	p.scripts["c"].Add(providertest.Say("theirs"))
	if err := p.conv.Turn(t.Context(), text("go")); err != nil {
		t.Fatal(err)
	}
	p.write(`{"type":"event_msg","payload":{"type":"task_started","turn_id":"back"}}`)
	p.write(`{"type":"event_msg","payload":{"type":"agent_message","message":"Codex again"}}`)
	p.write(`{"type":"event_msg","payload":{"type":"task_started","turn_id":"more"}}`)
	log, err := turnlog.ReadRollout(t.Context(), p.rollout, threadID)
	if err != nil {
		t.Fatal(err)
	}
	page, err := log.Transcript(0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(page.Text) {
		if words, _, ok := strings.Cut(line, " answers from now on, in place of "); ok || strings.Contains(line, "Codex again") {
			got = append(got, strings.TrimSpace(words))
		}
	}
	want := []string{"m-b of b on the engine native", "m-c of c", "m of mock on the engine codex", "Codex again"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("transcript (-want +got):\n%s\n%s", d, page.Text)
	}
}
