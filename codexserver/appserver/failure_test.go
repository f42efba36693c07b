package appserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func start(t *testing.T, e *appserver.Engine, h engine.Host) engine.Conversation {
	t.Helper()
	conv, err := e.Start(t.Context(), protocol.Config{}, h)
	if err != nil {
		t.Fatal(err)
	}
	return conv
}

func answered(r *run) {
	r.say("done")
	r.complete("completed")
}

// TestIncompleteResponse has a provider that cuts a response off, which Codex reports as an
// error of the turn.
func TestIncompleteResponse(t *testing.T) {
	for _, whole := range []bool{true, false} { // whether the message's end is reported
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t)
			f.turn = func(r *run) {
				r.say("before")
				r.notify("item/agentMessage/delta", `{"threadId":%q,"turnId":%q,"itemId":"m2","delta":"half"}`, threadID, r.current())
				if whole {
					r.say("half")
				}
				r.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":"failed","items":[],"error":{"message":"Incomplete response returned, reason: max_output_tokens"}}}`, threadID, r.current())
			}
			h := &recorder{}
			err := start(t, f.engine(appserver.Options{}), h).Turn(t.Context(), protocol.TurnInput{Items: protocol.TextInput("go")})
			end, _ := h.events[len(h.events)-1].(protocol.TaskComplete)
			if err != nil || end.LastAgentMessage == nil || *end.LastAgentMessage != "half" || end.Incomplete != "it reached the model's limit of output tokens" {
				t.Errorf("the turn ended with %v and %+v", err, end)
			}
		})
	}
}

func TestOldVersionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.version = "0.59.0"
		_, err := f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{}, &recorder{})
		var old *appserver.TooOldError
		if !errors.As(err, &old) || old.Found != "0.59.0" || !strings.Contains(err.Error(), "npm i -g") {
			t.Errorf("error %v", err)
		}
	})
}

func TestHandshakeNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.on["initialize"] = func(r *run, _ *jsonrpc.Request) (any, error) {
			<-r.ctx.Done()
			return nil, r.ctx.Err()
		}
		begun := time.Now()
		_, err := f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{}, &recorder{})
		if err == nil || !strings.Contains(err.Error(), "did not answer initialize") || time.Since(begun) > 32*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

func TestNotSignedInFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.on["account/read"] = func(*run, *jsonrpc.Request) (any, error) {
			return map[string]any{"account": nil, "requiresOpenaiAuth": true}, nil
		}
		e := f.engine(appserver.Options{})
		f.on["config/read"] = func(*run, *jsonrpc.Request) (any, error) {
			return map[string]any{"config": map[string]any{"model_provider": "mock"}}, nil
		}
		if _, err := e.Start(t.Context(), protocol.Config{}, &recorder{}); !errors.Is(err, appserver.ErrNotSignedIn) || !strings.Contains(err.Error(), "not signed in to the model provider, or it refused the credentials: run") {
			t.Errorf("error %v", err)
		}
	})
}

// TestConfigurationThatCodexRefuses has a Codex that starts, but cannot start a thread with
// its configuration.
func TestConfigurationThatCodexRefuses(t *testing.T) {
	for _, tt := range []struct {
		says   string
		usable bool
	}{
		{"invalid configuration: `wire` is no longer\nsupported", false},
		{"failed to read configuration layers: config.toml:17:8: unclosed table", false},
		{"Invalid request: unknown variant `config/read`", true}, // it is too old for the question
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t)
			e := f.engine(appserver.Options{})
			f.on["config/read"] = func(*run, *jsonrpc.Request) (any, error) {
				return nil, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", tt.says)
			}
			r := e.Check(t.Context())
			want := "codex cannot use its configuration: " + strings.ReplaceAll(tt.says, "\n", " ")
			if r.Usable() != tt.usable || !tt.usable && r.Problem != want {
				t.Errorf("%s: %+v", tt.says, r)
			}
		})
	}
}

func TestConversationWithAnotherProviderNeedsNoLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t) // its threads have the provider mock, itself the built-in one
		f.on["account/read"] = func(*run, *jsonrpc.Request) (any, error) {
			return map[string]any{"account": nil, "requiresOpenaiAuth": true}, nil
		}
		f.turn = answered
		if err := start(t, f.engine(appserver.Options{}), &recorder{}).Turn(t.Context(), text("go")); err != nil {
			t.Error(err)
		}
	})
}

func TestDeathInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.turn = func(r *run) {
			if r.n == 1 {
				r.cancel() // as kill -9 would
				return
			}
			answered(r)
		}
		h := &recorder{}
		conv := start(t, f.engine(appserver.Options{}), h)
		err := conv.Turn(t.Context(), text("go"))
		var failed *engine.TurnError
		if !errors.As(err, &failed) {
			t.Fatalf("error %v", err)
		}
		if got := h.types()[1:]; !slices.Equal(got, []string{"task_started", "error", "task_complete"}) {
			t.Errorf("events %v", got)
		}
		if err := conv.Turn(t.Context(), text("on")); err != nil || h.answer() != "done" {
			t.Errorf("next turn: %v, %q", err, h.answer())
		}
		if !slices.Contains(f.methods(), "thread/resume") {
			t.Errorf("calls %v", f.methods())
		}
	})
}

func TestDeathInApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.turn = func(r *run) {
			r.item(threadID, turnID, command)
			go r.askCommand(threadID, turnID)
		}
		ended := make(chan struct{})
		h := &recorder{exec: func(ctx context.Context, _ protocol.ExecApprovalRequest) elicit.Outcome {
			f.runs[0].cancel()
			<-ctx.Done()
			close(ended)
			return elicit.Outcome{Decision: elicit.Abort}
		}}
		conv := start(t, f.engine(appserver.Options{}), h)
		begun := time.Now()
		var failed *engine.TurnError
		if err := conv.Turn(t.Context(), text("go")); !errors.As(err, &failed) {
			t.Errorf("error %v", err)
		}
		<-ended
		if took := time.Since(begun); took > time.Second {
			t.Errorf("took %v", took)
		}
		if h.count("exec_command_begin") != 0 {
			t.Errorf("events %v", h.types())
		}
	})
}

func TestGivesUpRestarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.turn = func(r *run) { r.cancel() }
		e := f.engine(appserver.Options{})
		conv := start(t, e, &recorder{})
		var err error
		for range 6 {
			err = conv.Turn(t.Context(), text("go"))
			synctest.Wait()
		}
		if err == nil || !strings.Contains(err.Error(), "4 times within a minute") || len(f.runs) != 4 {
			t.Errorf("%d runs, error %v", len(f.runs), err)
		}
		f.mu.Lock()
		f.turn = answered
		f.mu.Unlock()
		<-time.After(time.Minute + time.Second)
		if err := conv.Turn(t.Context(), text("go")); err != nil {
			t.Errorf("a minute later: %v", err)
		}
	})
}

func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		e := f.engine(appserver.Options{})
		h := &recorder{}
		conv := start(t, e, h)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		f.turn = func(*run) { cancel(why) }
		err := conv.Turn(ctx, text("go"))
		var abort *engine.AbortError
		if !errors.As(err, &abort) || !errors.Is(err, why) {
			t.Errorf("error %v", err)
		}
		if got := h.types()[1:]; !slices.Equal(got, []string{"task_started", "turn_aborted"}) {
			t.Errorf("events %v", got)
		}
	})
}

func TestHangAfterInterruptEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.on["turn/interrupt"] = func(r *run, _ *jsonrpc.Request) (any, error) {
			<-r.ctx.Done()
			return nil, r.ctx.Err()
		}
		conv := start(t, f.engine(appserver.Options{}), &recorder{})
		ctx, cancel := context.WithCancel(t.Context())
		f.turn = func(r *run) {
			if r.n == 1 {
				cancel()
				return
			}
			answered(r)
		}
		begun := time.Now()
		if err := conv.Turn(ctx, text("go")); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("took %v", took)
		}
		// The next turn waits until the first one is certain to be over.
		err := conv.Turn(t.Context(), text("on"))
		if err == nil {
			t.Error("a turn began before the previous one had ended")
		}
		if took := time.Since(begun); took > 12*time.Second {
			t.Errorf("took %v", took)
		}
		if err := conv.Turn(t.Context(), text("on")); err != nil || len(f.runs) != 2 {
			t.Errorf("%d runs, error %v", len(f.runs), err)
		}
	})
}

func TestTurnStartNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.on["turn/start"] = func(r *run, _ *jsonrpc.Request) (any, error) {
			<-r.ctx.Done()
			return nil, r.ctx.Err()
		}
		h := &recorder{}
		begun := time.Now()
		conv := start(t, f.engine(appserver.Options{}), h)
		err := conv.Turn(t.Context(), text("go"))
		if err == nil || !strings.Contains(err.Error(), "did not answer turn/start within 30s") || time.Since(begun) > 32*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		// An app-server with nothing else to do is replaced.
		if err := conv.Turn(t.Context(), text("go")); err == nil || !strings.Contains(err.Error(), "has not ended the previous, interrupted turn") {
			t.Errorf("error %v", err)
		}
		f.mu.Lock()
		f.turn = answered
		delete(f.on, "turn/start")
		f.mu.Unlock()
		if err := conv.Turn(t.Context(), text("go")); err != nil || h.answer() != "done" || len(f.runs) != 2 {
			t.Errorf("%v, %q, %d runs", err, h.answer(), len(f.runs))
		}
	})
}

func TestDroppedThreadIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.turn = answered
		refuse := true
		f.on["turn/start"] = func(*run, *jsonrpc.Request) (any, error) {
			if !refuse {
				return nil, nil
			}
			refuse = false
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "thread not found: %s", threadID)
		}
		h := &recorder{}
		if err := start(t, f.engine(appserver.Options{}), h).Turn(t.Context(), text("go")); err != nil || h.answer() != "done" {
			t.Errorf("%v, %q", err, h.answer())
		}
		if h.count("task_started") != 1 {
			t.Errorf("events %v", h.types())
		}
	})
}

func TestConfigurationIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.on["thread/start"] = func(*run, *jsonrpc.Request) (any, error) {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "failed to load configuration: no such provider; key sk-verysecretvalue")
		}
		_, err := f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{}, &recorder{})
		var fault *engine.ConfigError
		if !errors.As(err, &fault) || strings.Contains(err.Error(), "verysecret") {
			t.Errorf("error %v", err)
		}
	})
}

func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		const n = 20000
		f.turn = func(r *run) {
			for range n {
				r.notify("item/agentMessage/delta", `{"threadId":%q,"turnId":%q,"itemId":"m1","delta":"x"}`, threadID, turnID)
			}
			answered(r)
		}
		h := &recorder{}
		if err := start(t, f.engine(appserver.Options{}), h).Turn(t.Context(), text("go")); err != nil {
			t.Error(err)
		}
		if got := h.count("agent_message_delta"); got != n {
			t.Errorf("%d deltas", got)
		}
	})
}

func TestInvalidMessagesAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.turn = func(r *run) {
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
		}
		h := &recorder{}
		if err := start(t, f.engine(appserver.Options{}), h).Turn(t.Context(), text("go")); err != nil || h.answer() != "done" {
			t.Errorf("%v, %v", err, h.types())
		}
	})
}

func TestCloseEndsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		e := f.engine(appserver.Options{})
		began := make(chan struct{})
		f.turn = func(*run) { close(began) }
		conv := start(t, e, &recorder{})
		done := make(chan error, 1)
		go func() { done <- conv.Turn(t.Context(), text("go")) }()
		<-began
		begun := time.Now()
		e.Close()
		if err := <-done; err == nil || time.Since(begun) > time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		if _, err := e.Start(t.Context(), protocol.Config{}, &recorder{}); err == nil {
			t.Error("a closed engine starts")
		}
	})
}

func TestTurnsOfAThreadAreSerial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		running, most := 0, 0
		f.turn = func(r *run) {
			r.mu.Lock()
			running++
			most = max(most, running)
			r.mu.Unlock()
			<-time.After(time.Second)
			r.mu.Lock()
			running--
			r.mu.Unlock()
			r.complete("completed")
		}
		e := f.engine(appserver.Options{})
		// Two conversations may be the same thread.
		a, b := start(t, e, &recorder{}), start(t, e, &recorder{})
		done := make(chan error, 2)
		for _, c := range []engine.Conversation{a, b} {
			go func() { done <- c.Turn(t.Context(), text("go")) }()
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if most != 1 {
			t.Errorf("%d turns at once", most)
		}
	})
}

// TestTurnContextPersists checks that a turn's changes hold for later turns.
func TestTurnContextPersists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.turn = answered
		var sent []map[string]any
		f.on["turn/start"] = func(_ *run, req *jsonrpc.Request) (any, error) {
			var p map[string]any
			if err := json.Unmarshal(req.Params, &p); err != nil {
				return nil, err
			}
			delete(p, "input")
			sent = append(sent, p)
			return nil, nil
		}
		conv := start(t, f.engine(appserver.Options{}), &recorder{})
		in := text("go")
		in.Context = &protocol.TurnContext{
			Cwd: "/other", Model: "m2", ApprovalPolicy: protocol.ApprovalOnFailure, Summary: protocol.SummaryNone,
			SandboxPolicy: protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, NetworkAccess: true, WritableRoots: []string{"/r"}},
		}
		for _, in := range []protocol.TurnInput{in, text("on")} {
			if err := conv.Turn(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		want := `{"approvalPolicy":"on-request","cwd":"/other","model":"m2","sandboxPolicy":{"networkAccess":true,"type":"workspaceWrite","writableRoots":["/r"]},"summary":"none","threadId":"` + threadID + `"}`
		for i := range 2 {
			got, _ := json.Marshal(sent[i])
			if string(got) != want {
				t.Errorf("turn %d: %s", i+1, got)
			}
		}
	})
}
