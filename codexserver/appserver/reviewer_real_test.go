//go:build realcodex

package appserver_test

import (
	"bytes"
	"context"
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

// What the reviewer answers, and a configuration that has one.
const (
	allow    = `{"risk_level":"low","user_authorization":"high","outcome":"allow","rationale":"it is harmless"}`
	deny     = `{"risk_level":"high","user_authorization":"low","outcome":"deny","rationale":"it writes outside"}`
	reviewed = "approval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\napprovals_reviewer = \"auto_review\"\n" +
		"[sandbox_workspace_write]\nexclude_tmpdir_env_var = true\nexclude_slash_tmp = true\n"
)

// judgedActs are what a reviewer decides about. Each does something outside of the working folder.
func judgedActs() []judgedAct {
	call := func(args string) providertest.Turn {
		return providertest.Call(providertest.ToolCall{ID: "c1", Name: "exec_command", Arguments: args})
	}
	return []judgedAct{
		{approval.KindCommand, call(`{"cmd":"touch ../made.txt","sandbox_permissions":"require_escalated","justification":"to write"}`), "-lc 'touch ../made.txt'"},
		{approval.KindPatch, call(`{"cmd":"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: ../made.txt\n+hello\n*** End Patch\nEOF\n"}`), "/made.txt"},
		{approval.KindTool, mcpCall, "write_thing"},
	}
}

type judgedAct struct {
	kind approval.Kind
	turn providertest.Turn
	says string // how Codex names it to its model
}

// judged is what a server says of a turn.
type judged struct {
	client.Result
	did      bool     // what the act does
	log      []string // the event, the kind, the decision and who made it, or the exit code
	requests []providertest.Request
}

// judge runs a turn of the real Codex that is reviewed, and has each remark of it told. The client is not asked.
func judge(t *testing.T, desk approval.Desk, told func(remark string), turns ...providertest.Turn) (got judged) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	r := newReal(t, reviewed+demo(t), turns...)
	r.cwd = filepath.Join(r.cwd, "in")
	must.OK(t, os.Mkdir(r.cwd, 0o700))
	var log bytes.Buffer
	o := &codexserver.Options{Record: &log, Folder: r.cwd, Changes: codexserver.ChangeOptions{Read: new(false)}, Asking: setting.Asking{Where: setting.WhereClient}}
	if desk != nil {
		o.Desk, o.Asking.Where = desk, setting.WhereBoth
	}
	c := must.Get(client.Start(ctx, &client.Options{Server: codexserver.New(r.engine, o), Ask: func(_ context.Context, q *client.Question) elicit.Outcome {
		t.Errorf("asked %s", q.Message)
		return elicit.Outcome{Decision: elicit.Approved}
	}}))(t)
	defer c.Close()
	task := client.Task{Prompt: "go"}
	task.Event = func(e client.Event) {
		if b, is := e.Msg.(protocol.BackgroundEvent); is {
			told(b.Message)
		}
	}
	got.Result = must.Get(c.Run(ctx, task))(t)
	_, missing := os.Stat(filepath.Join(r.cwd, "..", "made.txt"))
	got.did = missing == nil || strings.Contains(got.Answer, "wrote it")
	for text := range strings.Lines(log.String()) {
		l := must.Get(record.Parse([]byte(text)))(t)
		words := []string{string(l.Event), string(l.Kind), string(l.Decision), l.By}
		if l.Exit != nil {
			words = append(words, fmt.Sprint(*l.Exit))
		}
		got.log = append(got.log, strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " "))
	}
	got.requests = r.Requests()
	return got
}

// TestRealReviewer has Codex's reviewer decide in the place of a person, and compares what was done with the result, its texts,
// the events and the log.
func TestRealReviewer(t *testing.T) {
	t.Parallel()
	verdicts := []struct{ name, text, says string }{
		{"deny", deny, `denied by Codex's reviewer, a model, which says: "it writes outside"`}, {"allow", allow, "it is harmless"},
		{"bad", "no JSON", "denied by Codex's reviewer, a model"}, {"fail", "", "denied by Codex's reviewer, a model"},
	}
	for _, act := range judgedActs() {
		for _, verdict := range verdicts {
			for _, after := range []time.Duration{0, 1500 * time.Millisecond} {
				name := fmt.Sprint(act.kind, " ", verdict.name, " ", after)
				if !nightly.Tests() && !slices.Contains([]string{"command deny 1.5s", "patch allow 0s", "tool deny 0s"}, name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					said := ""
					got := judge(t, nil, func(remark string) { said += remark + "\n" }, reviewer(verdict.text, after), act.turn, report)
					allowed, kind := verdict.name == "allow", string(act.kind)
					must.Equal(t, "done", allowed, got.did)
					if !strings.Contains(said, verdict.says) {
						t.Errorf("events %q", said)
					}
					if allowed {
						must.Equal(t, "log", []string{"decided " + kind + " approved reviewer", "begins " + kind, "ends 0"}, got.log)
						if len(got.Refused) > 0 || act.kind == approval.KindCommand && (len(got.Commands) != 1 || got.Commands[0].ApprovedBy != "reviewer") {
							t.Errorf("result %s", got.Raw)
						}
						return
					}
					must.Equal(t, "log", []string{"decided " + kind + " denied reviewer"}, got.log)
					if len(got.Refused) != 1 || got.Refused[0].By != "reviewer" || !strings.Contains(got.Refused[0].Why, verdict.says) || len(got.Commands) > 0 ||
						!strings.Contains(string(got.Raw), "(denied by Codex's reviewer, a model") {
						t.Errorf("result %+v, %s", got.TurnResult, got.Raw)
					}
				})
			}
		}
	}
}

// TestRealOverrule has a person overrule a denial of Codex's reviewer, which then decides once more. Codex tells its model once,
// with exactly the action. An instant answer overrules nothing, and the calling client is not asked.
func TestRealOverrule(t *testing.T) {
	t.Parallel()
	for _, act := range judgedActs() {
		kind := string(act.kind)
		for _, tt := range []struct {
			name, again string
			after       time.Duration
			log         []string
		}{
			{"it allows then", allow, time.Second, []string{"overruled " + kind + " page", "decided " + kind + " approved reviewer", "begins " + kind, "ends 0"}},
			{"it denies again", deny, time.Second, []string{"overruled " + kind + " page", "decided " + kind + " denied reviewer"}},
			{"an instant answer", deny, 0, []string{"decided " + kind + " denied nobody"}},
		} {
			if !nightly.Tests() && act.kind != approval.KindCommand && tt.again != allow { // what follows is the same for each kind
				continue
			}
			t.Run(kind+", "+tt.name, func(t *testing.T) {
				t.Parallel()
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
				desk := &servertest.Desk{Called: approval.ByPage, Answer: func(ctx context.Context) (string, error) {
					if asked.Add(1) > 1 {
						return servertest.Never(ctx)
					} else if tt.after == 0 {
						time.AfterFunc(time.Second, func() { close(told) })
					}
					return servertest.After(tt.after, servertest.Accept)(ctx)
				}}
				got := judge(t, desk, func(remark string) {
					if strings.Contains(remark, "a person overruled the denial; when") {
						close(told)
					}
				}, guardian, act.turn, again, report)
				must.Equal(t, "done", tt.again == allow, got.did)
				_, message, overruled := strings.Cut(string(got.requests[len(got.requests)-1].Body), "Approved action:")
				if overruled != (tt.after > 0) || overruled && (!strings.Contains(message[:300], act.says) || strings.Contains(message, "Approved action:")) {
					t.Errorf("Codex says %t: %.300s", overruled, message)
				}
				must.Equal(t, "log", append([]string{"decided " + kind + " denied reviewer"}, tt.log...), got.log)
			})
		}
	}
}
