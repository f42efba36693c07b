package appserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func steer(ctx context.Context, c engine.Conversation, words string) error {
	return c.(engine.Steerer).Steer(ctx, protocol.TextInput(words))
}

// TestSteerRefused checks that the sender of a message gets the app-server's error, and that the turn continues.
func TestSteerRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer handler
		items  []protocol.InputItem
		want   string // "" for engine.ErrNoTurn
	}{
		{"ended over there", refusal("no active turn to steer"), protocol.TextInput("x"), ""},
		{"another turn over there", refusal("expected active turn id `turn-1` but found `turn-2`"), protocol.TextInput("x"), ""},
		{"not of this turn", refusal("cannot steer a review turn"), protocol.TextInput("x"), "cannot steer a review turn"},
		{"empty", nil, nil, "the message is empty"},
		{"of no type", nil, []protocol.InputItem{{Type: "scent"}}, `input item 0 has the unknown type "scent"`},
	} {
		inBubble(t, test.name, func(t *testing.T, f *fake) {
			f.version = "0.154.0"
			f.on["turn/steer"] = test.answer
			sent := make(chan struct{})
			f.turn = func(r *run) { <-sent; answered(r) }
			h := &recorder{}
			conv := start(t, f.engine(appserver.Options{}), h)
			done := begin(t.Context(), conv, text("go"))
			synctest.Wait()
			err := conv.(engine.Steerer).Steer(t.Context(), test.items)
			close(sent)
			var refused *engine.RefusedError
			if test.want == "" && !errors.Is(err, engine.ErrNoTurn) || test.want != "" && (!errors.As(err, &refused) || err.Error() != test.want) {
				t.Errorf("error %v", err)
			}
			if err := <-done; err != nil || h.count("background_event")+h.count("user_message") != 0 {
				t.Errorf("turn: %v, events %v", err, h.types())
			}
		})
	}
}

// TestUnreadSteerIsSentAgain checks that a message that the app-server took and dropped is
// sent again in the next turn, before its input, and in no later one.
func TestUnreadSteerIsSentAgain(t *testing.T) {
	for _, end := range []string{"interrupted", "failed", "death"} {
		inBubble(t, end, func(t *testing.T, f *fake) {
			var inputs []string
			f.on["turn/start"] = func(_ *run, req *jsonrpc.Request) (any, error) {
				var p struct {
					Input []struct{ Text string }
				}
				err := json.Unmarshal(req.Params, &p)
				inputs = append(inputs, fmt.Sprint(p.Input))
				return nil, err
			}
			sent := make(chan struct{})
			f.turn = func(r *run) {
				r.read("go")
				<-sent
				switch end {
				case "death":
					r.cancel()
				case "failed":
					r.complete("failed")
				}
			}
			h := &recorder{}
			conv := start(t, f.engine(appserver.Options{}), h)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			done := begin(ctx, conv, text("go"))
			synctest.Wait()
			for _, words := range []string{"one", "two", "three"} {
				if err := steer(t.Context(), conv, words); err != nil {
					t.Errorf("Steer: %v", err)
				}
			}
			f.runs[0].read("two") // the model has this one
			synctest.Wait()
			close(sent)
			if end == "interrupted" {
				interrupt()
			}
			if err := <-done; err == nil {
				t.Error("the turn did not fail")
			}
			if n, m := h.count("user_message"), h.count("background_event"); n != 3 || m != 1 {
				t.Errorf("%d messages emitted, %d remarks: %v", n, m, h.types())
			}
			f.mu.Lock()
			f.turn = func(r *run) { r.read("onethreeon"); answered(r) }
			f.mu.Unlock()
			for _, words := range []string{"on", "and on"} {
				must.OK(t, conv.Turn(t.Context(), text(words)))
			}
			if want := []string{"[{go}]", "[{one} {three} {on}]", "[{and on}]"}; !slices.Equal(inputs, want) {
				t.Errorf("inputs %q, want %q", inputs, want)
			}
		})
	}
}

// TestSteerWaitsForTheTurn checks that a message waits until the app-server has begun the
// turn, or until its sender gives up.
func TestSteerWaitsForTheTurn(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		begins := make(chan struct{})
		f.on["turn/start"] = func(*run, *jsonrpc.Request) (any, error) { <-begins; return nil, nil }
		h := &recorder{}
		conv := start(t, f.engine(appserver.Options{}), h)
		if err := steer(t.Context(), conv, "early"); !errors.Is(err, engine.ErrNoTurn) {
			t.Errorf("before the first turn: %v", err)
		}
		done := begin(t.Context(), conv, text("same words"))
		h.wait(t, "task_started")
		hasty, stop := context.WithCancel(t.Context())
		stop()
		if err := steer(hasty, conv, "hasty"); !errors.Is(err, context.Canceled) {
			t.Errorf("a sender in haste: %v", err)
		}
		taken := make(chan error, 1)
		go func() { taken <- steer(t.Context(), conv, "same words") }()
		synctest.Wait()
		if slices.Contains(f.methods(), "turn/steer") {
			t.Error("the message was sent before the turn began")
		}
		r := f.runs[0]
		close(begins)
		if err := <-taken; err != nil {
			t.Errorf("a patient sender: %v", err)
		}
		r.read("same words")
		synctest.Wait()
		if h.count("user_message") != 0 {
			t.Error("the turn's own input was taken for the message")
		}
		r.read("same words")
		answered(r)
		if err := <-done; err != nil || h.count("user_message") != 1 || h.count("background_event") != 0 {
			t.Errorf("turn: %v, events %v", err, h.types())
		}
		if err := steer(t.Context(), conv, "late"); !errors.Is(err, engine.ErrNoTurn) {
			t.Errorf("after the turn: %v", err)
		}
	})
}

// TestSteerAnsweredLate ends a turn before the app-server has taken a message. The message
// is not kept, and its sender gets an error.
func TestSteerAnsweredLate(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		ended := make(chan struct{})
		f.on["turn/steer"] = func(r *run, _ *jsonrpc.Request) (any, error) {
			r.complete("interrupted")
			<-ended
			return json.RawMessage(`{"turnId":"turn-1"}`), nil
		}
		h := &recorder{}
		conv := start(t, f.engine(appserver.Options{}), h)
		done := begin(t.Context(), conv, text("go"))
		synctest.Wait()
		taken := make(chan error, 1)
		go func() { taken <- steer(t.Context(), conv, "late") }()
		if err := <-done; err == nil {
			t.Error("the turn did not end as interrupted")
		}
		close(ended)
		if err := <-taken; !errors.Is(err, engine.ErrNoTurn) {
			t.Errorf("error %v", err)
		}
		var input string
		f.mu.Lock()
		f.turn = answered
		f.on["turn/start"] = func(_ *run, req *jsonrpc.Request) (any, error) { input = string(req.Params); return nil, nil }
		f.mu.Unlock()
		if err := conv.Turn(t.Context(), text("on")); err != nil || strings.Contains(input, "late") || h.count("user_message") != 0 {
			t.Errorf("turn: %v, input %s, events %v", err, input, h.types())
		}
	})
}

// other is the id of another thread.
const other = "0199a2b3-0000-7000-8000-000000000002"

var readOnly = protocol.Config{Sandbox: protocol.SandboxReadOnly, ApprovalPolicy: protocol.ApprovalNever, ReadOnly: true}

// TestReview checks that Codex gets a review in a turn of a thread that can only read, and that no later turn can do more.
func TestReview(t *testing.T) {
	inBubble(t, "read-only", func(t *testing.T, f *fake) {
		f.config = json.RawMessage(`{"mcp_servers":{"evil":{"command":"touch"},"more":{"url":"http://x"}}}`)
		f.turn, f.policy = func(r *run) { r.say(`{"findings":[]}`); r.complete("completed") }, `"never"`
		threads, turns, h := f.keep("thread/start"), f.keep("turn/start"), &recorder{}
		conv := must.Get(f.engine(appserver.Options{}).Start(t.Context(), readOnly, h))(t)
		for range 2 {
			must.OK(t, conv.Turn(t.Context(), text("p")))
		}
		want := fmt.Sprintf(`{"approvalPolicy":"never","input":[{"text":"p","type":"text"}],"sandboxPolicy":{"networkAccess":false,"type":"readOnly"},"threadId":%q}`, threadID)
		must.Equal(t, "turn/start", []string{want, want}, *turns)
		for _, part := range []string{`"sandbox":"read-only"`, `"approvalPolicy":"never"`, `"mcp_servers.evil.enabled":false`, `"mcp_servers.more.enabled":false`, `"web_search":"disabled"`} {
			if !strings.Contains(strings.Join(*threads, ""), part) {
				t.Errorf("thread/start lacks %s: %s", part, *threads)
			}
		}
	})
}

// TestStartedWider refuses a thread that Codex has not started read-only, and a review that could do more than read.
func TestStartedWider(t *testing.T) {
	const review, start = "no review: codex would not run it read-only", "was to start the thread read-only"
	for name, tt := range map[string]struct {
		cfg                  protocol.Config
		policy, sandbox, say string
	}{
		"any thread": {protocol.Config{}, `"on-request"`, writes, start},
		"sandbox":    {readOnly, `"never"`, writes, review},
		"network":    {readOnly, `"never"`, `{"type":"readOnly","networkAccess":true}`, review},
		"policy":     {readOnly, `"on-request"`, reads, review},
		"rules":      {readOnly, `{"granular":{}}`, reads, review},
	} {
		f := newFake(t)
		f.policy, f.sandbox = tt.policy, tt.sandbox
		if _, err := f.engine(appserver.Options{}).Start(t.Context(), tt.cfg, &recorder{}); err == nil || !strings.Contains(err.Error(), tt.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

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
