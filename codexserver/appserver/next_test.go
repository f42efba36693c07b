package appserver_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
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
