package appserver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json/jsontext"
)

// TestOverrule has a person asked whether the denial of a command is overruled. Codex is told once, with exactly what was denied,
// and only by a person. What then runs is the reviewer's decision.
func TestOverrule(t *testing.T) {
	const (
		method  = "thread/approveGuardianDeniedAction"
		waiting = `{"type":"commandExecution","id":%q,"command":"rm x","cwd":"/work","status":"inProgress","commandActions":[]}`
		rm      = `{"type":"command","source":"unifiedExec","command":"rm camelCase","cwd":"/work"}`
		event   = `{"event":{"action":{"command":"rm camelCase","cwd":"/work","source":"unified_exec","type":"command"},"completed_at_ms":2,"decision_source":"agent",` +
			`"id":"of \"c1\"","rationale":"no \u001b[1m way","risk_level":"high","started_at_ms":1,"status":"denied","target_item_id":"c1","turn_id":"turn-1","user_authorization":null},"threadId":"` + threadID + `"}`
		denied    = "decided command denied reviewer"
		overruled = "`rm camelCase`: a person overruled the denial; when Codex's model tries that again, its reviewer decides once more."
	)
	deny := func(r *run) {
		item := fmt.Sprintf(waiting, "c1")
		r.item(threadID, turnID, item)
		r.reviews(`"c1"`, rm, "denied")
		r.ends(item, "declined", "")
		select { // the model thinks
		case <-r.ctx.Done():
		case <-time.After(5 * time.Second):
		}
	}
	taken := func(r *run, _ *jsonrpc.Request) (any, error) { return struct{}{}, nil }
	after := func(d time.Duration, says elicit.Decision) func(context.Context) elicit.Decision {
		return func(context.Context) elicit.Decision { time.Sleep(d); return says }
	}
	for _, tt := range []struct {
		name   string
		says   func(context.Context) elicit.Decision
		codex  handler
		play   func(*run)
		asked  int32
		told   int // how often Codex was
		log    string
		remark string
		err    string
	}{
		{"a person approves, and the reviewer allows it then", after(time.Second, elicit.Approved), taken, func(r *run) {
			deny(r)
			item := fmt.Sprintf(waiting, "c2")
			r.item(threadID, turnID, item)
			r.reviews(`"c2"`, rm, "approved")
			r.ends(item, "completed", `,"exitCode":0`)
		}, 1, 1, denied + ", overruled command page, decided command approved reviewer, begins command by reviewer, ends 0", overruled, ""},
		{"a person approves, and the reviewer denies again", after(time.Second, elicit.Approved), taken, func(r *run) {
			deny(r)
			r.review("started", `"c2"`, rm, "inProgress")
			r.review("completed", `"c2"`, rm, "denied")
		}, 2, 1, denied + ", overruled command page, " + denied, overruled, ""},
		{"an instant answer", after(0, elicit.Approved), taken, deny, 1, 0, denied + ", decided command denied nobody", "The page accepted 1 ms after the question. That did not count.", ""},
		{"for the session", after(time.Second, elicit.ApprovedForSession), taken, deny, 1, 1, denied + ", overruled command page", overruled, ""},
		{"a person declines", after(time.Second, elicit.Denied), taken, deny, 1, 0, denied + ", decided command denied page", "", ""},
		{"a person ends the turn", after(time.Second, elicit.Abort), taken, deny, 1, 0, denied + ", decided command abort page", "", "turn interrupted: the client chose to abort the turn"},
		{"nobody answers", nil, taken, deny, 1, 0, denied, "", ""},
		{"an answer after the turn", func(ctx context.Context) elicit.Decision { <-ctx.Done(); return elicit.Approved }, taken, deny, 1, 0, denied, "", ""},
		{"Codex lacks the method", after(time.Second, elicit.Approved), nil, deny, 1, 1, denied + ", overruled command page",
			"`rm camelCase`: the denial was not overruled, because Codex did not take that: Invalid request: unknown variant `" + method + "`.", ""},
		{"Codex does not answer", after(time.Second, elicit.Approved), never, deny, 1, 1, denied + ", overruled command page",
			"`rm camelCase`: the denial was not overruled, because Codex did not take that: codex app-server did not answer " + method + " within 2s.", ""},
		{"Codex ends the turn meanwhile", after(time.Second, elicit.Approved), func(r *run, _ *jsonrpc.Request) (any, error) {
			r.complete("completed")
			time.Sleep(time.Second)
			return struct{}{}, nil
		}, deny, 1, 1, denied + ", overruled command page", "`rm camelCase`: a person overruled the denial after Codex had ended the turn, so that it counts from the next one.", ""},
		{"what is not a denial, or is not known", nil, taken, func(r *run) {
			for i, action := range []string{rm, rm, `{"type":"telepathy"}`} {
				target := fmt.Sprintf(`"t%d"`, i)
				r.review("started", target, action, "inProgress")
				r.review("completed", target, action, []string{"timedOut", "aborted", "denied"}[i])
			}
			r.review("completed", `"c9"`, rm, "denied") // it did not begin
		}, 0, 0, "decided command denied reviewer, decided command denied reviewer, decided tool denied reviewer, " + denied, "", ""},
		{"too many", nil, taken, func(r *run) {
			for i := range 20 {
				target := fmt.Sprintf(`"t%d"`, i)
				r.review("started", target, rm, "inProgress")
				r.review("completed", target, rm, "denied")
			}
		}, 8, 0, strings.TrimSuffix(strings.Repeat(denied+", ", 20), ", "), "", ""},
	} {
		inBubble(t, tt.name, func(t *testing.T, f *fake) {
			var sent []string
			f.on[method] = func(r *run, req *jsonrpc.Request) (any, error) {
				params := jsontext.Value(req.Params)
				must.Check(t, params.Canonicalize())
				f.mu.Lock()
				sent = append(sent, string(params))
				f.mu.Unlock()
				if tt.codex == nil {
					return nil, nil
				}
				return tt.codex(r, req)
			}
			a := &account{t: t, overrules: tt.says}
			began := time.Now()
			err := a.run(f, tt.play)
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("the turn took %v", took)
			}
			if fmt.Sprint(err) != tt.err && (err != nil || tt.err != "") {
				t.Errorf("error %v", err)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			must.Equal(t, "told", tt.told, len(sent))
			for _, params := range sent {
				must.Equal(t, "params", event, params)
			}
			must.Equal(t, "asked", tt.asked, a.asked.Load())
			must.Equal(t, "log", tt.log, strings.Join(a.lines(), ", "))
			must.Equal(t, "refused", strings.Count(tt.log, "denied reviewer"), len(a.result.Refused))
			must.Equal(t, "remarks", tt.remark, strings.Join(a.remarks, "\n"))
		})
	}
}
