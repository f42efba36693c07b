package appserver_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func start(t *testing.T, e *appserver.Engine, h engine.Host) engine.Conversation {
	t.Helper()
	conv := must.Get(e.Start(t.Context(), protocol.Config{}, h))(t)
	return conv
}

func answered(r *run) {
	r.say("done")
	r.complete("completed")
}

// turn runs a turn of a new conversation, in false time. The app-server plays it, and then answers.
func turn(t *testing.T, h engine.Host, play func(*run)) (err error) {
	t.Helper()
	bubble(t, func(t *testing.T, f *fake) {
		played := make(chan struct{})
		f.turn = func(r *run) { play(r); answered(r); close(played) }
		err = start(t, f.engine(appserver.Options{}), h).Turn(t.Context(), text("go"))
		<-played // which may be after an abort
	})
	return err
}

// TestKeysInErrors has a provider that repeats keys in its errors, which nobody may read: one that looks
// like a key, and those of variables and headers in the configuration.
func TestKeysInErrors(t *testing.T) {
	t.Setenv("MY_PROVIDERS_WORD", "four-words-nobody-knows")
	t.Setenv("MY_OTHER_WORD", "Bearer five-more-words")
	t.Setenv("OPENAI_API_KEY", "gsk_openai_key")
	secrets := []string{"sk-abcdefghij", "four-words-nobody-knows", "five-more-words", "gsk_openai_key", "static-header-1", "static-query-2", "static-token-3"}
	bubble(t, func(t *testing.T, f *fake) {
		f.config = map[string]any{"model": "m", "model_providers": map[string]any{"p": map[string]any{
			"env_key": "MY_PROVIDERS_WORD", "http_headers": map[string]any{"x-key": "static-header-1"},
			"query_params": map[string]any{"key": "static-query-2"}, "experimental_bearer_token": "static-token-3",
		}, "q": map[string]any{"env_http_headers": map[string]any{"x": "MY_OTHER_WORD"}}}}
		said := "the provider p refuses " + strings.Join(secrets, " and ")
		f.turn = func(r *run) {
			r.notify("error", `{"threadId":%q,"turnId":%q,"willRetry":true,"error":{"message":%q}}`, threadID, r.current(), said)
			r.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":"failed","items":[],"error":{"message":"it failed","additionalDetails":%q}}}`, threadID, r.current(), said)
		}
		h := &recorder{}
		err := start(t, f.engine(appserver.Options{}), h).Turn(t.Context(), text("go"))
		if err == nil {
			t.Fatal("the turn did not fail")
		}
		want := "the provider p refuses " + strings.TrimSuffix(strings.Repeat("[redacted] and ", len(secrets)), " and ")
		told := []string{err.Error()}
		for _, event := range h.events {
			switch event := event.(type) {
			case protocol.StreamError:
				told = append(told, event.Message)
			case protocol.Error:
				told = append(told, event.Message)
			}
		}
		must.Equal(t, fmt.Sprintf("it said %q", told), 3, len(told))
		for _, words := range told {
			if !strings.HasSuffix(words, want) {
				t.Errorf("it said %q, want %q", words, want)
			}
		}
	})
}

// TestIncompleteResponse has a provider that cuts a response off, which Codex reports as an error of the turn.
func TestIncompleteResponse(t *testing.T) {
	for _, whole := range []bool{true, false} { // whether the message's end is reported
		bubble(t, func(t *testing.T, f *fake) {
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

// TestStartFails begins conversations that Codex, or what is said of it, does not allow.
func TestStartFails(t *testing.T) {
	nobody := reply(map[string]any{"account": nil, "requiresOpenaiAuth": true})
	provider := map[string]any{"model_provider": "mock"} // that of the fake's threads
	var fault *engine.ConfigError
	for _, tt := range []struct {
		name   string
		config any
		on     map[string]handler
		is     func(error) bool // nil for any error
		says   string           // "" for a turn that works
	}{
		{"no answer", nil, map[string]handler{"initialize": never}, nil, "did not answer initialize"},
		{"not signed in", provider, map[string]handler{"account/read": nobody},
			func(err error) bool { return errors.Is(err, appserver.ErrNotSignedIn) }, "not signed in to the model provider, or it refused the credentials: run"},
		{"not signed in to another provider", nil, map[string]handler{"account/read": nobody}, nil, ""},
		{"a configuration that Codex refuses", nil, map[string]handler{"thread/start": refusal("failed to load configuration: no such provider; key sk-verysecretvalue")},
			func(err error) bool { return errors.As(err, &fault) && !strings.Contains(err.Error(), "verysecret") }, "no such provider"},
	} {
		inBubble(t, tt.name, func(t *testing.T, f *fake) {
			f.config, f.turn = tt.config, answered
			maps.Copy(f.on, tt.on)
			begun := time.Now()
			conv, err := f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{}, &recorder{})
			if tt.says == "" && err == nil {
				err = conv.Turn(t.Context(), text("go"))
			}
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) || tt.is != nil && !tt.is(err) || time.Since(begun) > 32*time.Second {
				t.Errorf("after %v: %v", time.Since(begun), err)
			}
		})
	}
}

// TestDeafAppServer has an app-server that answers nothing any more when a turn is to begin: the turn fails, and the app-server is
// ended, with whatever still waits for it.
func TestDeafAppServer(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on["turn/start"], f.on["codexmcp/none"] = never, never
		e := f.engine(appserver.Options{})
		err := start(t, e, &recorder{}).Turn(t.Context(), text("go"))
		must.Fail(t, "the turn", "did not answer turn/start within 30s", err)
		must.OK(t, e.Close())
	})
}

// TestConfigurationThatCodexRefuses has a Codex that starts, but cannot start a thread with its configuration.
func TestConfigurationThatCodexRefuses(t *testing.T) {
	for _, says := range []string{"invalid configuration: `wire` is no longer\nsupported", "failed to read configuration layers: config.toml:17:8: unclosed table"} {
		bubble(t, func(t *testing.T, f *fake) {
			f.on["config/read"] = refusal(says)
			self := must.Get(os.Executable())(t)
			e := f.engine(appserver.Options{Path: self})
			e.TrustTemporary()
			r := e.Check(t.Context())
			want := "codex cannot use its configuration: " + strings.ReplaceAll(says, "\n", " ")
			if r.Usable() || r.Problem != want {
				t.Errorf("%s: %+v", says, r)
			}
		})
	}
}

// TestLimitInError fails a turn at a limit of the account. The error says when the limit is over.
func TestLimitInError(t *testing.T) {
	for kind, want := range map[string]bool{"usageLimitExceeded": true, "serverOverloaded": false} {
		bubble(t, func(t *testing.T, f *fake) {
			f.turn = func(r *run) {
				r.notify("account/rateLimits/updated", `{"rateLimits":{"primary":{"usedPercent":100,"windowDurationMins":300,"resetsAt":%d}}}`, time.Now().Add(time.Hour).Unix())
				r.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":"failed","items":[],"error":{"message":"no more","codexErrorInfo":%q}}}`, threadID, r.current(), kind)
			}
			err := start(t, f.engine(appserver.Options{}), &recorder{}).Turn(t.Context(), text("go"))
			if err == nil || !strings.HasPrefix(err.Error(), "no more ("+kind+")") || strings.HasSuffix(err.Error(), "\nlimits of the account: 100% used of 5h0m0s, resets in 1h0m0s") != want {
				t.Errorf("%s: %v", kind, err)
			}
		})
	}
}

func TestHangAfterInterruptEndsTheProcess(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on["turn/interrupt"] = never
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

func TestDroppedThreadIsResumed(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
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
		must.Equal(t, fmt.Sprintf("events %v", h.types()), 1, h.count("task_started"))
	})
}

// TestSlowRequestEndsNoTurn does not answer a request while a turn runs. The app-server is
// killed only if it answers no other request either.
func TestSlowRequestEndsNoTurn(t *testing.T) {
	for name, hangs := range map[string]bool{"slow": false, "hangs": true} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			f.on["thread/list"] = never
			if hangs {
				f.on["codexmcp/none"] = never
			}
			f.turn = func(r *run) {
				select {
				case <-time.After(time.Minute):
					answered(r)
				case <-r.ctx.Done():
				}
			}
			e := f.engine(appserver.Options{})
			conv := start(t, e, &recorder{})
			turn := begin(t.Context(), conv, text("go"))
			_, err := e.List(t.Context(), protocol.ListConversationsParams{})
			if err == nil || !strings.Contains(err.Error(), "did not answer thread/list within 30s") {
				t.Errorf("error %v", err)
			}
			if err := <-turn; (err != nil) != hangs {
				t.Errorf("the turn ended with %v", err)
			}
		})
	}
}

// TestStalledTurnStart does not answer turn/start for long. That turn fails, and is
// interrupted if it begins later. Another turn continues. The end of the client's connection is not that of the app-server.
func TestStalledTurnStart(t *testing.T) {
	for name, cause := range map[string]error{"waits": nil, "interrupted": context.DeadlineExceeded, "the client has left": jsonrpc.ErrClosed} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			const late = "late"
			f.turn = func(r *run) {
				<-time.After(5 * time.Minute)
				answered(r)
			}
			e := f.engine(appserver.Options{})
			busy := start(t, e, &recorder{})
			turn := begin(t.Context(), busy, text("go"))
			synctest.Wait()

			begin, cut := make(chan struct{}), make(chan string, 1)
			f.mu.Lock()
			f.on["thread/start"] = reply(map[string]any{"thread": map[string]any{"id": other}, "sandbox": map[string]any{"type": "readOnly"}})
			f.on["turn/start"] = func(r *run, _ *jsonrpc.Request) (any, error) {
				<-begin
				r.notify("turn/started", `{"threadId":%q,"turn":{"id":%q}}`, other, late)
				return map[string]any{"turn": map[string]any{"id": late}}, nil
			}
			f.on["turn/interrupt"] = func(r *run, req *jsonrpc.Request) (any, error) {
				cut <- string(req.Params)
				r.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":"interrupted","items":[]}}`, other, late)
				return struct{}{}, nil
			}
			f.mu.Unlock()
			conv := start(t, e, &recorder{})
			ctx, want := t.Context(), "did not answer turn/start within 30s"
			if cause != nil {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeoutCause(ctx, time.Second, cause)
				defer stop()
				want = cause.Error()
			}
			if err := conv.Turn(ctx, text("go")); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v", err)
			}
			if err := conv.Turn(t.Context(), text("again")); err == nil || !strings.Contains(err.Error(), "has not ended the previous, interrupted turn") {
				t.Errorf("error %v", err)
			}
			<-time.After(time.Minute)
			close(begin)
			if got := <-cut; !strings.Contains(got, other) || !strings.Contains(got, late) {
				t.Errorf("interrupted %s", got)
			}
			if err := <-turn; err != nil || len(f.runs) != 1 {
				t.Errorf("the other turn ended with %v; %d runs", err, len(f.runs))
			}
		})
	}
}
