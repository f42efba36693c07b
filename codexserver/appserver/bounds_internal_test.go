package appserver

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/internal/wire"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestTail writes more than is kept, and asks for the reason of the end.
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
			})
		}
		writing.Wait()
		for i := range 51 {
			write(fmt.Sprintf("\x1b[31m%d\x1b[0m\n \n", i))
		}
		if n := len(words.lines); n != 50 || words.lines[0].text != "1" || words.lines[49].text != "50" {
			t.Errorf("%d lines: %v", n, words.lines)
		}
		for range 3 {
			write(strings.Repeat("x", 3000))
		}
		if n := len(words.part); n != 4096 {
			t.Errorf("a line without end: %d bytes", n)
		}
		write("\nError: sk-1234567890 ")
		write("is wrong")
		const want = "Error: [redacted] is wrong"
		for after, want := range map[time.Duration]string{5 * time.Second: want, 5*time.Second + 1: ""} {
			if got := words.last(time.Now().Add(after)); got != want {
				t.Errorf("%v later: %q, want %q", after, got, want)
			}
		}
	})
}

// TestWithdrawn withdraws requests before and after they come.
func TestWithdrawn(t *testing.T) {
	q := &requests{open: map[jsonrpc.ID]context.CancelFunc{}, early: map[jsonrpc.ID]bool{}}
	id := func(n int) jsonrpc.ID { return mcptypes.IntID(int64(n)) }
	ended := map[int]int{}
	add := func(n int) { q.add(id(n), func() { ended[n]++ }) }
	add(1)
	q.withdraw(id(1))
	q.withdraw(id(2))
	add(2)
	add(3)
	if ended[1] != 1 || ended[2] != 1 || ended[3] != 0 || len(q.early) != 0 {
		t.Errorf("ended %v, and %d early", ended, len(q.early))
	}
	for n := range 1000 {
		q.withdraw(id(100 + n))
	}
	if len(q.early) != 1000 {
		t.Errorf("%d are remembered", len(q.early))
	}
	if q.withdraw(id(99)); len(q.early) != 1 {
		t.Errorf("%d are remembered after one more", len(q.early))
	}
}

// TestUnknownMethods reports each once, at most a hundred of them, and little of a long one.
func TestUnknownMethods(t *testing.T) {
	var logged bytes.Buffer
	c := &child{log: slog.New(slog.NewTextHandler(&logged, nil)), unknown: map[string]bool{}}
	for i := range 102 {
		for range 2 {
			c.warnUnknown("method", fmt.Sprintf("%0100d", i)+strings.Repeat("x", i))
		}
	}
	if n := strings.Count(logged.String(), "\n"); n != 100 || strings.Contains(logged.String(), "xx") {
		t.Errorf("%d lines: %.300s", n, logged.String())
	}
}

// TestDeaths has an app-server that dies again and again.
func TestDeaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{}
		end := ending{gone: make(chan struct{}), err: errClosed, stderr: &tail{}}
		close(end.gone)
		last := &launch{child: &child{end: end}}
		for n := range 4 {
			if err := e.exhausted(last); err != nil {
				t.Errorf("after %d deaths: %v", n, err)
			}
			e.deaths = append(e.deaths, time.Now())
		}
		if err := e.exhausted(last); err == nil {
			t.Error("a fifth run")
		}
		time.Sleep(time.Minute)
		if err := e.exhausted(last); err == nil {
			t.Error("a fifth run within a minute")
		}
		time.Sleep(time.Nanosecond)
		if err := e.exhausted(last); err != nil || len(e.deaths) != 0 {
			t.Errorf("a minute later: %v", err)
		}
	})
}

// TestThreads checks which threads belong to a conversation, and that they are forgotten with it.
func TestThreads(t *testing.T) {
	l := &threads{loaded: map[string]*thread{}, agents: map[string]subAgent{}}
	one, two := l.load("one", nil), l.load("two", nil)
	if l.load("one", nil) != one || one == two {
		t.Error("a conversation has two threads")
	}
	l.adopt(one, "a", "/root/a")
	l.adopt(one, "b", "")
	l.adopt(two, "a", "/root/other") // known
	l.adopt(two, "one", "/root/one")
	l.adopt(two, "", "/root/none")
	check := func(when string, want map[string]*thread) {
		t.Helper()
		for _, id := range []string{"one", "two", "a", "b", "", "other"} {
			if got, _ := l.root(id); got != want[id] {
				t.Errorf("%s, %q belongs to %v", when, id, got)
			}
		}
	}
	check("at first", map[string]*thread{"one": one, "two": two, "a": one, "b": one})
	for id, want := range map[string]string{"a": "/root/a", "b": "b", "one": ""} {
		if _, path := l.root(id); path != want {
			t.Errorf("%q is at %q, want %q", id, path, want)
		}
	}
	a := l.load("a", nil) // now a conversation
	check("loaded", map[string]*thread{"one": one, "two": two, "a": a, "b": one})
	l.forget("one")
	l.forget("one")
	check("forgotten", map[string]*thread{"two": two, "a": a})
	if len(l.loaded) != 2 || len(l.agents) != 0 {
		t.Errorf("%d threads and %d agents are kept", len(l.loaded), len(l.agents))
	}
}

// TestParseVersion has versions, and what looks like one.
func TestParseVersion(t *testing.T) {
	for text, want := range map[string]version{
		"1.2.3": {1, 2, 3}, " 0.118.0-alpha.3\n": {0, 118, 0},
		"1.2": {}, "1.2.3.4": {}, "": {}, "1..3": {}, "1.2.x": {}, "1.2.+-3": {}, "v1.2.3": {},
	} {
		if got, err := parseVersion(text); got != want || (err == nil) != (want != version{}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, n := range []string{"-1.2.3", "1.-2.3"} { // - begins what is not of the version
		if got, err := parseVersion(n); err == nil {
			t.Errorf("%q: %v", n, got)
		}
	}
}

// TestLasting checks which rules of Codex are offered: those about the host of the question, which a person can read.
func TestLasting(t *testing.T) {
	rule := func(action, host string) []wire.HostRule { return []wire.HostRule{{Action: action, Host: host}} }
	const accepts = `{"applyNetworkPolicyAmendment":{"network_policy_amendment":{"host":"a.example","action":"allow"}}}`
	long := strings.Repeat("a", maxRule)
	for name, tt := range map[string]struct {
		change func(p *wire.CommandApproval, q *protocol.ExecApprovalRequest)
		want   bool
	}{
		"the host": {func(*wire.CommandApproval, *protocol.ExecApprovalRequest) {}, true},
		"as long as possible": {func(p *wire.CommandApproval, _ *protocol.ExecApprovalRequest) {
			p.NetworkApprovalContext.Host, p.ProposedNetworkPolicyAmendments = long, rule(wire.NetworkPolicyRuleActionAllow, long)
		}, true},
		"longer": {func(p *wire.CommandApproval, _ *protocol.ExecApprovalRequest) {
			p.NetworkApprovalContext.Host, p.ProposedNetworkPolicyAmendments = long+"a", rule(wire.NetworkPolicyRuleActionAllow, long+"a")
		}, false},
		"another host": {func(p *wire.CommandApproval, _ *protocol.ExecApprovalRequest) {
			p.ProposedNetworkPolicyAmendments = rule(wire.NetworkPolicyRuleActionAllow, "b.example")
		}, false},
		"a denial": {func(p *wire.CommandApproval, _ *protocol.ExecApprovalRequest) {
			p.ProposedNetworkPolicyAmendments = rule("deny", "a.example")
		}, false},
		"more than is known": {func(p *wire.CommandApproval, _ *protocol.ExecApprovalRequest) {
			p.ProposedNetworkPolicyAmendments[0].Unknown = []byte(`{"port":1}`)
		}, false},
		"no host":               {func(p *wire.CommandApproval, _ *protocol.ExecApprovalRequest) { p.NetworkApprovalContext = nil }, false},
		"a replaceable program": {func(_ *wire.CommandApproval, q *protocol.ExecApprovalRequest) { q.Replaceable = true }, false},
		"input": {func(p *wire.CommandApproval, _ *protocol.ExecApprovalRequest) {
			p.Kind = wire.CommandExecutionApprovalKindWriteStdin
		}, false},
		"among the decisions": {func(p *wire.CommandApproval, _ *protocol.ExecApprovalRequest) {
			p.AvailableDecisions = []stdjson.RawMessage{[]byte(`"accept"`), []byte(accepts)}
		}, true},
		"not among the decisions": {func(p *wire.CommandApproval, _ *protocol.ExecApprovalRequest) {
			p.AvailableDecisions = []stdjson.RawMessage{[]byte(`"accept"`)}
		}, false},
		"no decisions": {func(p *wire.CommandApproval, _ *protocol.ExecApprovalRequest) {
			p.AvailableDecisions = []stdjson.RawMessage{}
		}, false},
		"what a person cannot read": {func(p *wire.CommandApproval, _ *protocol.ExecApprovalRequest) {
			p.NetworkApprovalContext.Host, p.ProposedNetworkPolicyAmendments = "a`b", rule(wire.NetworkPolicyRuleActionAllow, "a`b")
		}, false},
	} {
		p := &wire.CommandApproval{NetworkApprovalContext: &wire.Network{Host: "a.example"}, ProposedNetworkPolicyAmendments: rule(wire.NetworkPolicyRuleActionAllow, "a.example")}
		q := &protocol.ExecApprovalRequest{}
		tt.change(p, q)
		words, accept, err := lasting(p, q)
		if (err == nil) != tt.want || (words != "") != tt.want || (accept != nil) != tt.want {
			t.Errorf("%s: %q, %s, %v", name, words, accept, err)
		}
	}
}

// TestWithdraw has requests that are withdrawn before and after they come.
func TestWithdraw(t *testing.T) {
	q := requests{open: map[jsonrpc.ID]context.CancelFunc{}, early: map[jsonrpc.ID]bool{}}
	stopped := 0
	stop := func() { stopped++ }
	early, late := mcptypes.IntID(1), mcptypes.IntID(2)
	q.withdraw(early)
	q.add(early, stop)
	q.add(late, stop)
	if stopped != 1 || len(q.early) != 0 {
		t.Errorf("%d stopped, %d are remembered", stopped, len(q.early))
	}
	q.withdraw(late)
	for i := range 2*maxEarly + 1 {
		q.withdraw(mcptypes.IntID(int64(i + 3)))
		if len(q.early) > maxEarly {
			t.Fatalf("%d ids are remembered", len(q.early))
		}
	}
	if stopped != 2 || len(q.open) != 2 || len(q.early) != 1 {
		t.Errorf("%d stopped, %d open, %d are remembered", stopped, len(q.open), len(q.early))
	}
}
