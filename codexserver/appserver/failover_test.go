package appserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
)

// nextEngine is the engine in which turns go on.
type nextEngine struct {
	policy  protocol.ApprovalPolicy // that it has; "" is the one asked for
	roots   []string                // that it adds
	refuses string                  // the error of a folder
	turn    func(host engine.Host, in protocol.TurnInput) error

	reach   func() []string   // of Codex
	codex   *appserver.Engine // in whose place it goes on
	configs []protocol.Config
	inputs  []protocol.TurnInput
	closed  int
}

func (e *nextEngine) Resume(_ context.Context, _ string, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	e.configs = append(e.configs, cfg)
	if e.refuses != "" && len(cfg.WritableRoots) > 0 {
		return nil, &engine.ConfigError{Err: errors.New(e.refuses)}
	}
	policy := cfg.ApprovalPolicy
	if e.policy != "" {
		policy = e.policy
	}
	host.Emit(protocol.SessionConfigured{ApprovalPolicy: policy})
	return &nextConversation{e, host, append(slices.Clone(cfg.WritableRoots), e.roots...)}, nil
}

func (*nextEngine) FindRollout(context.Context, string) (string, error) {
	return "", engine.ErrNotFound
}

func (*nextEngine) Fork(context.Context, string, protocol.Config, engine.Host) (engine.Conversation, error) {
	return nil, engine.ErrNotFound
}

type nextConversation struct {
	engine *nextEngine
	host   engine.Host
	roots  []string
}

func (*nextConversation) ID() string                { return threadID }
func (c *nextConversation) WritableRoots() []string { return c.roots }
func (c *nextConversation) Close() error            { c.engine.closed++; return nil }

func (c *nextConversation) Turn(_ context.Context, in protocol.TurnInput) error {
	c.engine.inputs = append(c.engine.inputs, in)
	c.host.Emit(protocol.TaskStarted{})
	if c.engine.turn != nil {
		return c.engine.turn(c.host, in)
	}
	answer := "theirs"
	c.host.Emit(protocol.AgentMessage{Message: answer})
	c.host.Emit(protocol.TaskComplete{LastAgentMessage: &answer})
	return nil
}

func (c *nextConversation) Review(ctx context.Context, r protocol.Review) error {
	return c.Turn(ctx, protocol.TurnInput{Items: protocol.TextInput(r.Prompt)})
}

// refusingFake is a Codex whose provider refuses with an error of Codex, and a conversation in it.
func refusingFake(t *testing.T, next *nextEngine, h engine.Host, info string, o appserver.Options, change func(*fake)) (*fake, engine.Conversation) {
	t.Helper()
	f := newFake(t)
	f.rollout = filepath.Join(t.TempDir(), "rollout-"+threadID+".jsonl")
	if err := os.WriteFile(f.rollout, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.turn = func(r *run) {
		out, err := os.OpenFile(f.rollout, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = fmt.Fprintf(out, `{"type":"event_msg","payload":{"type":"task_complete","turn_id":%q}}`+"\n", r.current())
		}
		if err != nil || out.Close() != nil {
			t.Error(err)
		}
		r.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":"failed","items":[],"error":{"message":"no more","codexErrorInfo":%s}}}`, threadID, r.current(), info)
	}
	if change != nil {
		change(f)
	}
	if o.Failover.To == nil {
		o.Failover.To = []setting.FailoverTo{{Provider: "b", Model: "m1"}}
	}
	o.Next = func(reach func() []string) (engine.Resumer, error) {
		next.reach = reach
		return next, nil
	}
	next.codex = f.engine(o)
	return f, start(t, next.codex, h)
}

// TestFailoverReasons has the errors of Codex after which another engine goes on, and others.
func TestFailoverReasons(t *testing.T) {
	for info, want := range map[string]bool{
		`"usageLimitExceeded"`: true, `"serverOverloaded"`: true, `"rateLimitExceeded"`: true, `"unauthorized"`: true,
		`{"responseTooManyFailedAttempts":{"httpStatusCode":429}}`: true, `{"httpConnectionFailed":{"httpStatusCode":402}}`: true,
		`"badRequest"`: false, `"cyberPolicy"`: false, `"contextWindowExceeded"`: false, `"sessionBudgetExceeded"`: false, `"other"`: false,
		`"internalServerError"`: false, `"sandboxError"`: false, `null`: false, `{"responseStreamDisconnected":{"httpStatusCode":500}}`: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			h, next := &recorder{}, &nextEngine{}
			_, conv := refusingFake(t, next, h, info, appserver.Options{}, nil)
			err := conv.Turn(t.Context(), text("go"))
			if (err == nil) != want || (len(next.inputs) == 1) != want {
				t.Errorf("%s: %v, %d turns elsewhere", info, err, len(next.inputs))
			}
			types := "session_configured task_started model_reroute agent_message task_complete"
			if !want {
				types = "session_configured task_started error task_complete"
			}
			if got := strings.Join(h.types(), " "); got != types {
				t.Errorf("%s: events %s", info, got)
			}
		})
	}
}

// TestFailoverRules has the policies with which another engine goes on: those of Codex, or stricter
// ones. What cannot be kept is asked about, and without an answer the turn fails.
func TestFailoverRules(t *testing.T) {
	const workspace = `{"sandbox_mode":"workspace-write","sandbox_workspace_write":{"writable_roots":["/data"],"network_access":true,"exclude_slash_tmp":true}}`
	for _, tt := range []struct {
		name, policy, sandbox string
		next                  nextEngine
		agree                 bool
		want, asked, err      string
	}{
		{name: "the same", policy: `"on-request"`, sandbox: `{}`, want: "on-request read-only [] false"},
		{name: "never", policy: `"never"`, sandbox: `{"sandbox_mode":"danger-full-access"}`, want: "never danger-full-access [] true"},
		{name: "workspace", policy: `"untrusted"`, sandbox: workspace, want: "untrusted workspace-write [/data] true"},
		{name: "finer rules", policy: `{"granular":{"rules":true,"mcp_elicitations":true,"sandbox_approval":true}}`, sandbox: `{}`, agree: true, want: "untrusted read-only [] false", asked: "granular"},
		{name: "finer rules, refused", policy: `{"granular":{"rules":true,"mcp_elicitations":true,"sandbox_approval":true}}`, sandbox: `{}`, asked: "granular", err: "nobody agreed"},
		{name: "a folder", policy: `"never"`, sandbox: workspace, next: nextEngine{refuses: "argument /config/sandbox_workspace_write/writable_roots/0: no"}, agree: true, want: "never workspace-write [] true", asked: "/data"},
		{name: "a folder, refused", policy: `"never"`, sandbox: workspace, next: nextEngine{refuses: "argument /config/sandbox_workspace_write/writable_roots/0: no"}, asked: "/data", err: "nobody agreed"},
		{name: "a laxer policy", policy: `"untrusted"`, sandbox: workspace, next: nextEngine{policy: "never"}, err: "approval policy would be"},
		{name: "an unknown policy", policy: `"untrusted"`, sandbox: workspace, next: nextEngine{policy: "x"}, err: "approval policy would be"},
		{name: "another folder", policy: `"untrusted"`, sandbox: workspace, next: nextEngine{roots: []string{"/"}}, err: "could also write in /"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := ""
				h := &recorder{approve: func(_ context.Context, q *elicit.Question) elicit.Outcome {
					asked += q.Message
					if tt.agree {
						return elicit.Outcome{Decision: elicit.Approved}
					}
					return elicit.Outcome{Decision: elicit.Denied}
				}}
				_, conv := refusingFake(t, &tt.next, h, `"usageLimitExceeded"`, appserver.Options{}, func(f *fake) { f.policy, f.config = tt.policy, json.RawMessage(tt.sandbox) })
				err := conv.Turn(t.Context(), text("go"))
				if (asked == "") != (tt.asked == "") || !strings.Contains(asked, tt.asked) || asked != "" && !strings.Contains(asked, "m1 of b") {
					t.Errorf("asked %q", asked)
				}
				if tt.err != "" {
					if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), "no more") || len(tt.next.inputs) != 0 {
						t.Errorf("%v, %d turns", err, len(tt.next.inputs))
					}
					return
				}
				cfg := tt.next.configs[len(tt.next.configs)-1]
				var table struct {
					Network bool `json:"network_access"`
				}
				if json.Unmarshal(cfg.Overrides["sandbox_workspace_write"], &table) != nil {
					t.Errorf("overrides %s", cfg.Overrides)
				}
				got := fmt.Sprint(cfg.ApprovalPolicy, " ", cfg.Sandbox, " ", cfg.WritableRoots, " ", table.Network)
				if reach := tt.next.reach(); !slices.Contains(reach, "/work") || cfg.WritableRoots != nil && !slices.Contains(reach, "/data") {
					t.Errorf("it may start programs outside of %q", reach)
				}
				if err != nil || got != tt.want || cfg.Model != "m1" || string(cfg.Overrides["model_provider"]) != `"b"` || cfg.Cwd != "/work" {
					t.Errorf("%v, %s with %+v, want %s", err, got, cfg, tt.want)
				}
			})
		})
	}
}

// TestFailoverOverrides has a call whose settings name other providers and policies: they are not those
// of the next engine.
func TestFailoverOverrides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &nextEngine{}
		cfg := protocol.Config{Model: "mine", FromCall: true, Overrides: map[string]json.RawMessage{
			"model_providers.b.base_url": json.RawMessage(`"http://evil"`), "model_provider": json.RawMessage(`"evil"`), "sandbox_mode": json.RawMessage(`"danger-full-access"`),
			"sandbox_workspace_write.network_access": json.RawMessage(`true`), "tools.web_search": json.RawMessage(`true`),
		}}
		f, _ := refusingFake(t, next, &recorder{}, `"usageLimitExceeded"`, appserver.Options{}, nil)
		e := f.engine(appserver.Options{Failover: setting.Failover{To: []setting.FailoverTo{{Provider: "b", Model: "m1"}}}, Next: func(func() []string) (engine.Resumer, error) { return next, nil }})
		conv, err := e.Start(t.Context(), cfg, &recorder{})
		if err == nil {
			err = conv.Turn(t.Context(), text("go"))
		}
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for key := range next.configs[0].Overrides {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		if got := strings.Join(keys, " "); got != "model_provider sandbox_workspace_write tools.web_search" || string(next.configs[0].Overrides["model_provider"]) != `"b"` || !next.configs[0].FromCall {
			t.Errorf("overrides %s", next.configs[0].Overrides)
		}
	})
}

// TestFailoverFile has a rollout that lacks the end of the turn: the next model would not read all that
// was done, so no engine goes on.
func TestFailoverFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &nextEngine{}
		_, conv := refusingFake(t, next, &recorder{}, `"usageLimitExceeded"`, appserver.Options{}, func(f *fake) {
			f.turn = func(r *run) {
				r.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":"failed","items":[],"error":{"message":"no more","codexErrorInfo":"usageLimitExceeded"}}}`, threadID, r.current())
			}
		})
		time.Sleep(time.Second)
		if err := conv.Turn(t.Context(), text("go")); err == nil || !strings.Contains(err.Error(), "does not have the end of the turn") || len(next.configs) != 0 {
			t.Errorf("%v, %d", err, len(next.configs))
		}
	})
}

// TestFailoverSwitches has a provider of Codex that refuses each time, with forged limits. Codex is
// asked once in a turn, at most once a minute, and after at most some days.
func TestFailoverSwitches(t *testing.T) {
	for resets, wait := range map[string]time.Duration{"-1": time.Minute, "9999999999999": 8 * 24 * time.Hour, "0": time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			h, next := &recorder{}, &nextEngine{}
			f, conv := refusingFake(t, next, h, `"usageLimitExceeded"`, appserver.Options{}, func(f *fake) {
				turn := f.turn
				f.turn = func(r *run) {
					r.notify("account/rateLimits/updated", `{"rateLimits":{"primary":{"usedPercent":100,"windowDurationMins":300,"resetsAt":%s}}}`, resets)
					turn(r)
				}
			})
			starts := func() (n int) {
				for _, m := range f.methods() {
					if m == "turn/start" {
						n++
					}
				}
				return n
			}
			for range 5 {
				if err := conv.Turn(t.Context(), text("go")); err != nil || h.answer() != "theirs" {
					t.Fatal(err)
				}
			}
			if starts() != 1 || next.closed != 0 {
				t.Errorf("resets %s: Codex was asked %d times", resets, starts())
			}
			time.Sleep(wait)
			if err := conv.Turn(t.Context(), text("go")); err != nil || starts() != 2 || next.closed != 1 || len(next.inputs) != 6 {
				t.Errorf("resets %s: %v, Codex was asked %d times, %d turns elsewhere", resets, err, starts(), len(next.inputs))
			}
			if list, err := next.codex.Models(t.Context()); resets == "9999999999999" && (err != nil || !strings.Contains(strings.Join(list.Notes, " "), "limits of the account: 100% used of 5h0m0s, resets in ")) {
				t.Errorf("limits: %+v, %v", list, err)
			}
			if n := len(f.runs); n != 2 {
				t.Errorf("the conversation was read anew in %d app-servers", n-1)
			}
			if h.count("task_started") != 6 || h.count("task_complete") != 6 {
				t.Errorf("events %v", h.types())
			}
		})
	}
}

// TestFailoverFails has the next provider refuse too: the turn ends with the words of both, and the
// conversation continues.
func TestFailoverFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, next := &recorder{}, &nextEngine{turn: func(host engine.Host, _ protocol.TurnInput) error {
			host.Emit(protocol.Error{Message: "neither"})
			host.Emit(protocol.TaskComplete{})
			return &engine.TurnError{Message: "neither"}
		}}
		_, conv := refusingFake(t, next, h, `"usageLimitExceeded"`, appserver.Options{}, nil)
		var failed *engine.TurnError
		err := conv.Turn(t.Context(), text("go"))
		said, _ := h.all()[3].(protocol.Error)
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), "neither") || strings.Count(err.Error(), "no more") != 1 || said.Message != err.Error() || h.count("task_complete") != 1 {
			t.Errorf("%v, events %v", err, h.types())
		}
		next.turn = nil
		if err := conv.Turn(t.Context(), text("again")); err != nil || h.answer() != "theirs" {
			t.Error(err)
		}
		if err := conv.Close(); err != nil || next.closed != 1 {
			t.Errorf("%v, closed %d times", err, next.closed)
		}
	})
}

// TestFailoverReview has the provider refuse the reviewer, whose turn is in no file of the conversation. A
// conversation without a turn has no file at all until it gets an item.
func TestFailoverReview(t *testing.T) {
	for _, had := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, h, next := newCritic(t), &recorder{}, &nextEngine{}
			c.turn = func(r *run) { // Codex names a turn before it ends, also if its answer to the start is late
				r.notify("turn/started", `{"threadId":"0199a2b3-0000-7000-8000-000000000002","turn":{"id":"turn-1","status":"inProgress","items":[]}}`)
				r.notify("turn/completed", `{"threadId":"0199a2b3-0000-7000-8000-000000000002","turn":{"id":"turn-1","status":"failed","items":[],"error":{"message":"no more","codexErrorInfo":"usageLimitExceeded"}}}`)
			}
			e := c.engine(appserver.Options{Failover: setting.Failover{To: []setting.FailoverTo{{Provider: "b", Model: "m1"}}}, Next: func(func() []string) (engine.Resumer, error) { return next, nil }})
			conv := start(t, e, h)
			if had {
				writeFile(t, filepath.Join(c.home, conv.ID()+".jsonl"), "")
			}
			if err := review(t, conv, protocol.Review{Prompt: "look"}); err != nil || h.answer() != "theirs" || len(next.inputs) != 1 {
				t.Errorf("%v, events %v", err, h.types())
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if (c.injected == "") != had {
				t.Errorf("with a file %t: injected %q", had, c.injected)
			}
		})
	}
}
