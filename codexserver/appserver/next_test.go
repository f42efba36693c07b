package appserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestNextCodex runs turns of a Codex that is newer than this package.
func TestNextCodex(t *testing.T) {
	const more = `,"added":{"a":[1]},"alsoAdded":"x"`
	for _, tt := range []struct {
		name  string
		reply string // of thread/start
		turn  func(*testing.T, *run)
		says  string // what the turn answers
		fails string // or how it fails
		logs  []string
	}{
		{name: "unknown methods", says: "done", turn: func(t *testing.T, r *run) {
			for range 2 {
				r.notify("item/hologram/delta", `{"threadId":%q}`, threadID)
				if got := r.ask("item/hologram/requestApproval", `{"threadId":%q,"turnId":%q}`, threadID, turnID); !strings.HasPrefix(got, "error: method not found") {
					t.Errorf("an unknown request is answered with %s", got)
				}
			}
			answered(r)
		}, logs: []string{"item/hologram/requestApproval"}},
		{name: "methods that are known and not read", says: "done", turn: func(_ *testing.T, r *run) {
			r.notify("thread/status/changed", `{"threadId":%q}`, threadID)
			answered(r)
		}},
		{name: "unknown members", says: "done",
			reply: `{"thread":{"id":"` + threadID + `","path":"/r.jsonl","turns":[{"id":"t","items":[],"status":"completed"` + more + `}]` + more + `},"model":"m","cwd":"/work","approvalPolicy":{"granular":{"mcp_elicitations":true,"rules":true,"sandbox_approval":true` + more + `}},"sandbox":{"type":"readOnly"` + more + `}` + more + `}`,
			turn: func(_ *testing.T, r *run) {
				r.notify("item/completed", `{"threadId":%q,"turnId":%q,"item":{"type":"agentMessage","id":"m","text":"done","phase":"thought"`+more+`}`+more+`}`, threadID, turnID)
				r.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":"completed","items":[]`+more+`}`+more+`}`, threadID, turnID)
			}},
		{name: "unknown items and words", says: "done", turn: func(_ *testing.T, r *run) {
			r.item(threadID, turnID, `{"type":"hologram","id":"h","text":{"not":"a text"},"status":7}`)
			r.item(threadID, turnID, strings.Replace(command, "inProgress", "beaming", 1))
			r.notify("turn/plan/updated", `{"threadId":%q,"turnId":%q,"plan":[{"step":"s","status":"paused"}]}`, threadID, turnID)
			answered(r)
		}},
		{name: "a member of another type", says: "done", turn: func(_ *testing.T, r *run) {
			r.item(threadID, turnID, strings.Replace(command, `"/work"`, `{"path":"/work"}`, 1))
			answered(r)
		}, logs: []string{"/item/cwd"}},
		{name: "messages in no form", says: "done", turn: func(_ *testing.T, r *run) {
			for _, line := range []string{
				`not json`, `[]`, `{}`, `{"method":5}`, `{"id":77,"result":{}}`,
				`{"method":"turn/completed","params":{"threadId":"` + threadID + `","turn":null}}`,
				`{"method":"turn/completed","params":{"threadId":"` + threadID + `","turn":{"id":"another","status":"completed"}}}`,
				`{"method":"turn/completed","params":[1]}`,
				`{"method":"item/started","params":{"threadId":"` + threadID + `","turnId":"` + turnID + `","item":{"type":5}}}`,
				`{"method":"item/started","params":{"threadId":"` + threadID + `","turnId":"` + turnID + `"}}`,
				`{"method":"item/completed","params":{"threadId":"` + threadID + `","turnId":"` + turnID + `","item":{"type":"novelty","id":"n","command":[1]}}}`,
				`{"method":"error","params":{"threadId":"` + threadID + `","turnId":"` + turnID + `","error":"text","willRetry":true}}`,
				`{"method":"serverRequest/resolved","params":{"threadId":"` + threadID + `","requestId":null}}`,
				`{"method":"account/rateLimits/updated","params":{"rateLimits":null}}`,
			} {
				_ = r.wire.Write(context.Background(), [][]byte{[]byte(line)})
			}
			answered(r)
		}, logs: []string{"turn/completed"}},
		{name: "an end in another form", fails: "unknown form", turn: func(_ *testing.T, r *run) {
			r.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":{"completed":true},"items":[]}}`, threadID, turnID)
		}, logs: []string{"turn/completed"}},
		{name: "an end in an unknown way", fails: "the turn ended as evaporated", turn: func(_ *testing.T, r *run) { r.complete("evaporated") }},
		{name: "a thread in another form", fails: "thread/id", reply: `{"thread":{"id":{"uuid":"x"}},"sandbox":{"type":"readOnly"}}`},
	} {
		inBubble(t, tt.name, func(t *testing.T, f *fake) {
			if tt.reply != "" {
				f.on["thread/start"] = reply(tt.reply)
			}
			f.turn = func(r *run) { tt.turn(t, r) }
			var logged bytes.Buffer
			e := f.engine(appserver.Options{Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))})
			h := &recorder{}
			conv, err := e.Start(t.Context(), protocol.Config{}, h)
			if err == nil {
				err = conv.Turn(t.Context(), text("go"))
			}
			e.Close()
			switch {
			case tt.fails == "" && err != nil, tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)):
				t.Errorf("error %v, want %q", err, tt.fails)
			case tt.fails == "" && h.answer() != tt.says:
				t.Errorf("answer %q, want %q", h.answer(), tt.says)
			}
			for _, part := range tt.logs {
				if n := strings.Count(logged.String(), part); n == 0 || strings.HasPrefix(tt.name, "unknown methods") && n != 1 {
					t.Errorf("%q is logged %d times in %s", part, n, &logged)
				}
			}
			if len(tt.logs) == 0 && logged.Len() > 0 {
				t.Errorf("logged: %s", &logged)
			}
		})
	}
}

// TestNextApprovals asks for approvals with members and words that this package does not know.
// What a person cannot judge is refused; the rest is shown, each time.
func TestNextApprovals(t *testing.T) {
	patch := func(from, to string) func(*run) {
		return func(r *run) { r.item(threadID, turnID, strings.Replace(patchItem, from, to, 1)) }
	}
	const accepted = `{"decision":"accept"}`
	for _, tt := range []struct {
		name, method, params string
		before               func(*run)
		want                 string
		shown                string // "" if nobody is asked
	}{
		{"a new member of a command", askCommand, strings.Replace(execParams, `{`, `{"asRoot":true,`, 1), withItems, accepted, "asRoot = true"},
		{"a new member that is null", askCommand, strings.Replace(execParams, `{`, `{"asRoot":null,`, 1), withItems, accepted, "rm x"},
		{"another environment", askCommand, strings.Replace(execParams, `{`, `{"environmentId":"devbox-1",`, 1), withItems, accepted, `the environment "devbox-1"`},
		{"another environment for permissions", askMore, strings.Replace(moreParams, `{`, `{"environmentId":"devbox-1",`, 1), nil, `{"permissions":{"network":{"enabled":true}},"scope":"turn"}`, `the environment "devbox-1"`},
		{"this environment", askCommand, strings.Replace(execParams, `{`, `{"environmentId":"local","approvalId":null,`, 1), withItems, accepted, "rm x"},
		{"a new member of a host", askCommand, `{` + ofTurn + `,"itemId":"c9","networkApprovalContext":{"host":"h","protocol":"quic","ports":[1]}}`, nil, accepted, "ports = [1]"},
		{"permissions under another name", askCommand, strings.Replace(execParams, `{`, `{"morePermissions":{"fileSystem":{"write":["/"]}},`, 1), withItems, accepted, `morePermissions = {"fileSystem"`},
		{"a new kind of command", askCommand, strings.Replace(execParams, `{`, `{"kind":"hologram",`, 1), withItems, denied, ""},
		{"a new member of a patch", askPatch, strings.Replace(patchParams, `{`, `{"asRoot":true,`, 1), withItems, accepted, "asRoot = true"},
		{"a new member of a change", askPatch, patchParams, patch(`"diff"`, `"mode":"0777","diff"`), accepted, `mode = "0777"`},
		{"a new kind of change", askPatch, patchParams, patch(`"add"`, `"symlink"`), denied, ""},
		{"a change under another name", askPatch, patchParams, patch(`"diff"`, `"content"`), denied, ""},
		{"a change of another type", askPatch, patchParams, patch(`"x\n"`, `["x"]`), denied, ""},
		{"a new member of permissions", askMore, strings.Replace(moreParams, `{`, `{"until":"tomorrow",`, 1), nil, `{"permissions":{"network":{"enabled":true}},"scope":"turn"}`, `until = "tomorrow"`},
		{"a new member of a tool call", askElicit, strings.Replace(toolParams, `{`, `{"asRoot":true,`, 1), nil, `{"action":"accept","content":{}}`, "asRoot = true"},
		{"a new mode of a form", askElicit, strings.Replace(formParams, `"form"`, `"hologram"`, 1), nil, `{"action":"decline","content":null}`, ""},
		{"a secret under another name", askInput, strings.Replace(inputParams, `"header"`, `"secret":true,"header"`, 1), nil, `{"answers":{}}`, ""},
		{"a new member of the model's questions", askInput, strings.Replace(inputParams, `{`, `{"urgent":true,`, 1), nil, `{"answers":{"q1":{"answers":["A"]}}}`, "Which one?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var answers []string
			var shown []string
			show := func(text string) elicit.Outcome {
				shown = append(shown, text)
				return elicit.Outcome{Decision: elicit.ApprovedForSession}
			}
			h := &recorder{
				exec: func(_ context.Context, q protocol.ExecApprovalRequest) elicit.Outcome {
					if strings.Contains(q.Reason, "does not know") && (!q.Human || !q.Once) {
						t.Errorf("a rule may decide about %+v", q)
					}
					out := show(strings.Join(append(q.Command, q.Reason), " "))
					if q.Once {
						out.Decision = elicit.Approved // as the board does
					}
					return out
				},
				patch: func(_ context.Context, q protocol.PatchApprovalRequest) elicit.Outcome {
					show(strings.Join(q.Notes, " "))
					return elicit.Outcome{Decision: elicit.Approved}
				},
				approve: func(_ context.Context, q *elicit.Question) elicit.Outcome {
					show(q.Message)
					return elicit.Outcome{Decision: elicit.Approved}
				},
				elicit: func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
					show(string(params))
					return json.RawMessage(`{"action":"accept","content":{"q1":"A"}}`), nil
				},
			}
			if err := turn(t, h, func(r *run) {
				if tt.before != nil {
					tt.before(r)
				}
				for range 2 {
					answers = append(answers, r.ask(tt.method, "%s", tt.params))
				}
			}); err != nil {
				t.Fatal(err)
			}
			for _, got := range answers {
				if got != tt.want {
					t.Errorf("answer %s, want %s", got, tt.want)
				}
			}
			times := 2
			if tt.shown == "" {
				times = 0
			}
			if len(shown) != times || times > 0 && !strings.Contains(shown[0], tt.shown) {
				t.Errorf("a person sees %q, want %d times %q", shown, times, tt.shown)
			}
		})
	}
}
