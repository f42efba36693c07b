//go:build realcodex

package appserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// reviewer is Codex's reviewer, which answers after a time with a text, or fails.
func reviewer(verdict string, after time.Duration) providertest.Turn {
	return providertest.Turn{Match: "risk_level", Repeat: true, Func: func(providertest.Request) providertest.Turn {
		wait := make(chan struct{})
		time.AfterFunc(after, func() { close(wait) })
		answer := providertest.Say(verdict)
		if verdict == "" {
			answer = providertest.Turn{Status: http.StatusBadRequest, Body: `{"error":{"message":"broken"}}`}
		}
		answer.Wait = wait
		return answer
	}}
}

// quietDesk is a desk where nobody answers, which keeps the remarks.
type quietDesk struct {
	remarks chan string
}

func (*quietDesk) Name() approval.Decider                       { return approval.ByPage }
func (*quietDesk) Decided(*approval.Request, approval.Decision) {}
func (*quietDesk) Ask(ctx context.Context, _ *approval.Request) (json.RawMessage, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (d *quietDesk) Event(_ approval.Thread, m protocol.EventMsg) {
	if b, is := m.(protocol.BackgroundEvent); is {
		d.remarks <- b.Message
	}
}

// What the reviewer answers, and a configuration that has one.
const (
	allow    = `{"risk_level":"low","user_authorization":"high","outcome":"allow","rationale":"it is harmless"}`
	deny     = `{"risk_level":"high","user_authorization":"low","outcome":"deny","rationale":"it writes outside"}`
	reviewed = "approval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\napprovals_reviewer = \"auto_review\"\n" +
		"[sandbox_workspace_write]\nexclude_tmpdir_env_var = true\nexclude_slash_tmp = true\n"
)

// TestRealReviewer has Codex's reviewer decide in the place of a person, and compares what was done with the result, its texts,
// the events and the log.
func TestRealReviewer(t *testing.T) {
	outside := filepath.Join("..", "made.txt")
	patch := providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: " + outside + "\n+hello\n*** End Patch\nEOF\n"}))
	command := providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{
		"cmd": "touch " + outside, "sandbox_permissions": "require_escalated", "justification": "to write"}))
	acts := []struct {
		name string
		turn providertest.Turn
		kind record.Kind
	}{{"command", command, record.KindCommand}, {"patch", patch, record.KindPatch}, {"tool", mcpCall, record.KindTool}}
	verdicts := []struct{ name, text, says string }{
		{"deny", deny, `denied by Codex's reviewer, a model, which says: "it writes outside"`}, {"allow", allow, "it is harmless"},
		{"bad", "no JSON", "denied by Codex's reviewer, a model"}, {"fail", "", "denied by Codex's reviewer, a model"},
	}
	n := 0
	for _, act := range acts {
		for _, verdict := range verdicts {
			for _, after := range []time.Duration{1500 * time.Millisecond, 0, 500 * time.Millisecond, 5 * time.Second} {
				for _, how := range []string{"codex", "background", "both"} {
					if n++; !nightly.Tests() && !slices.Contains([]string{"command deny 1.5s codex", "patch allow 0s both", "tool deny 0s background"},
						fmt.Sprint(act.name, " ", verdict.name, " ", after, " ", how)) {
						continue
					}
					t.Run(fmt.Sprint(act.name, " ", verdict.name, " ", after, " ", how), func(t *testing.T) {
						t.Parallel()
						ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
						defer stop()
						r := newReal(t, reviewed+demo(t),
							reviewer(verdict.text, after), act.turn, report)
						r.cwd = filepath.Join(r.cwd, "in")
						must.OK(t, os.Mkdir(r.cwd, 0o700))
						var log bytes.Buffer
						o := &codexserver.Options{Record: &log, Folder: r.cwd, Changes: codexserver.ChangeOptions{Read: new(false)}, Asking: setting.Asking{Where: setting.WhereClient}}
						desk := &quietDesk{make(chan string, 99)}
						if how == "both" {
							o.Desk, o.Asking.Where = desk, setting.WhereBoth
						}
						c, err := client.Start(ctx, &client.Options{Server: codexserver.New(r.engine, o), Ask: func(_ context.Context, q *client.Question) elicit.Outcome {
							t.Errorf("asked %s", q.Message)
							return elicit.Outcome{Decision: elicit.Denied}
						}})
						must.OK(t, err)
						defer c.Close()
						task := client.Task{Prompt: "go"}
						var said []string
						task.Event = func(e client.Event) {
							if b, is := e.Msg.(protocol.BackgroundEvent); is {
								said = append(said, b.Message)
							}
						}
						var got client.Result
						if how == "background" {
							must.OK(t, c.Call(ctx, "codex", map[string]any{"prompt": task.Prompt, "background": true}, nil))
							var r struct {
								Threads []protocol.TurnResult `json:"threads"`
							}
							must.OK(t, c.Call(ctx, "codex-wait", nil, &r))
							got = client.Result{TurnResult: r.Threads[0], Answer: r.Threads[0].Content}
							said = nil
						} else {
							got = must.Get(c.Run(ctx, task))(t)
						}
						_, missing := os.Stat(filepath.Join(r.cwd, outside))
						allowed := verdict.name == "allow"
						if did := missing == nil || strings.Contains(got.Answer, "wrote it"); did != allowed {
							t.Errorf("done: %t; %s", did, got.Raw)
						}
						var events []string
						for text := range strings.Lines(log.String()) {
							l := must.Get(record.Parse([]byte(text)))(t)
							exit := -1
							if l.Exit != nil {
								exit = *l.Exit
							}
							events = append(events, fmt.Sprint(l.Event, l.Kind, l.Decision, l.By, exit))
						}
						want := []string{fmt.Sprint("decided", act.kind, "denied", "reviewer", -1)}
						if allowed {
							want = []string{fmt.Sprint("decided", act.kind, "approved", "reviewer", -1), fmt.Sprint("begins", act.kind, -1), fmt.Sprint("ends", 0)}
						}
						must.Equal(t, "log", want, events)
						if allowed {
							if len(got.Refused) > 0 || act.name == "command" && (len(got.Commands) != 1 || got.Commands[0].ApprovedBy != "reviewer") {
								t.Errorf("result %s", got.Raw)
							}
						} else if len(got.Refused) != 1 || got.Refused[0].By != "reviewer" || !strings.Contains(got.Refused[0].Why, verdict.says) || len(got.Commands) > 0 ||
							how != "background" && !strings.Contains(string(got.Raw), "(denied by Codex's reviewer, a model") {
							t.Errorf("result %+v, %s", got.TurnResult, got.Raw)
						}
						if how != "background" && !strings.Contains(strings.Join(said, "\n"), verdict.says) {
							t.Errorf("events %q", said)
						}
						close(desk.remarks)
						shown := ""
						for remark := range desk.remarks {
							shown += remark + "\n"
						}
						if how == "both" && !strings.Contains(shown, verdict.says) {
							t.Errorf("the page got %q", shown)
						}
					})
				}
			}
		}
	}
}

// TestRealOverrule has a person overrule a denial of Codex's reviewer, which then decides once more. Codex tells its model once,
// with exactly the action. An instant answer overrules nothing, and the calling client is not asked.
func TestRealOverrule(t *testing.T) {
	call := func(args string) providertest.Turn {
		return providertest.Call(providertest.ToolCall{ID: "c1", Name: "exec_command", Arguments: args})
	}
	for _, act := range []struct {
		name   string
		turn   providertest.Turn
		action string
		kind   record.Kind
	}{
		{"command", call(`{"cmd":"touch ../made.txt","sandbox_permissions":"require_escalated","justification":"to write"}`), "-lc 'touch ../made.txt'", record.KindCommand},
		{"patch", call(`{"cmd":"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: ../made.txt\n+hello\n*** End Patch\nEOF\n"}`), "/made.txt", record.KindPatch},
		{"tool", mcpCall, "write_thing", record.KindTool},
	} {
		for _, tt := range []struct {
			name, again string
			after       time.Duration
			log         []string
		}{
			{"it allows then", allow, time.Second, []string{"overruled  page", "decided approved reviewer", "begins  ", "ends  "}},
			{"it denies again", deny, time.Second, []string{"overruled  page", "decided denied reviewer"}},
			{"an instant answer", deny, 0, []string{"decided denied nobody"}},
		} {
			if !nightly.Tests() && act.kind != record.KindCommand && tt.again != allow { // what follows is the same for each kind
				continue
			}
			t.Run(act.name+", "+tt.name, func(t *testing.T) {
				t.Parallel()
				ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
				defer stop()
				told := make(chan struct{}) // what the model does next waits for it
				var reviews, asked atomic.Int32
				guardian := providertest.Turn{Match: "risk_level", Repeat: true, Func: func(providertest.Request) providertest.Turn {
					if reviews.Add(1) == 1 {
						return providertest.Say(deny)
					}
					return providertest.Say(tt.again)
				}}
				again := providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
					next := providertest.Say("done")
					if tt.after > 0 {
						if next = act.turn; next.Func != nil {
							next = next.Func(r)
						}
					}
					next.Wait = told
					return next
				}}
				r := newReal(t, reviewed+demo(t), guardian, act.turn, again, report)
				r.cwd = filepath.Join(r.cwd, "in")
				must.OK(t, os.Mkdir(r.cwd, 0o700))
				var log bytes.Buffer
				desk := &servertest.Desk{Called: approval.ByPage, Answer: func(ctx context.Context) (string, error) {
					if asked.Add(1) > 1 {
						return servertest.Never(ctx)
					} else if tt.after == 0 {
						time.AfterFunc(time.Second, func() { close(told) })
					}
					return servertest.After(tt.after, servertest.Accept)(ctx)
				}}
				o := &codexserver.Options{Record: &log, Folder: r.cwd, Changes: codexserver.ChangeOptions{Read: new(false)}, Asking: setting.Asking{Where: setting.WhereBoth}, Desk: desk}
				c := must.Get(client.Start(ctx, &client.Options{Server: codexserver.New(r.engine, o), Ask: func(_ context.Context, q *client.Question) elicit.Outcome {
					t.Errorf("asked %s", q.Message)
					return elicit.Outcome{Decision: elicit.Approved}
				}}))(t)
				defer c.Close()
				task := client.Task{Prompt: "go"}
				task.Event = func(e client.Event) {
					if b, is := e.Msg.(protocol.BackgroundEvent); is && strings.Contains(b.Message, "a person overruled the denial; when") {
						close(told)
					}
				}
				got := must.Get(c.Run(ctx, task))(t)
				_, missing := os.Stat(filepath.Join(r.cwd, "..", "made.txt"))
				if did := missing == nil || strings.Contains(got.Answer, "wrote it"); did != (tt.again == allow) {
					t.Errorf("done: %t; %s", did, got.Raw)
				}
				requests := r.Requests()
				_, message, overruled := strings.Cut(string(requests[len(requests)-1].Body), "Approved action:")
				if overruled != (tt.after > 0) || overruled && (!strings.Contains(message[:300], act.action) || strings.Contains(message, "Approved action:")) {
					t.Errorf("Codex says %t: %.300s", overruled, message)
				}
				want, lines := []string{fmt.Sprint("decided denied reviewer ", act.kind)}, []string{}
				for _, line := range tt.log {
					if line += " "; !strings.HasPrefix(line, "ends") {
						line += string(act.kind)
					}
					want = append(want, line)
				}
				for text := range strings.Lines(log.String()) {
					l := must.Get(record.Parse([]byte(text)))(t)
					lines = append(lines, fmt.Sprint(l.Event, " ", l.Decision, " ", l.By, " ", l.Kind))
				}
				must.Equal(t, "log", want, lines)
			})
		}
	}
}
