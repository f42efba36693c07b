package appserver_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestOffline has a Codex that waits for the network, and says so every 13 seconds as the real one does, after other things
// have happened, and then ever on. The turn fails two minutes after the first time that nothing else happened.
func TestOffline(t *testing.T) {
	const every = 13 * time.Second
	waits := func(r *run, times int) {
		for range times {
			r.notify("error", `{"threadId":%q,"turnId":%q,"willRetry":true,"error":{"message":"Reconnecting... waiting for network","additionalDetails":"Connection failed sk-abcdefghij"}}`, threadID, turnID)
			select {
			case <-time.After(every):
			case <-r.ctx.Done():
				return
			}
		}
	}
	item := func(r *run, method, status string) {
		r.notify(method, `{"threadId":%q,"turnId":%q,"item":`+strings.Replace(command, "inProgress", status, 1)+`}`, threadID, turnID)
	}
	for name, tt := range map[string]struct {
		limit  time.Duration
		before func(*run) // it takes until the wait that counts
		after  time.Duration
	}{
		"from the beginning": {0, func(*run) {}, 2 * time.Minute},
		"a limit":            {time.Minute, func(*run) {}, time.Minute},
		"text": {0, func(r *run) {
			waits(r, 9) // 1m57s
			r.say("half")
		}, 9*every + 2*time.Minute},
		"another error": {0, func(r *run) {
			waits(r, 9)
			r.notify("error", `{"threadId":%q,"turnId":%q,"willRetry":true,"error":{"message":"Reconnecting... 1/5"}}`, threadID, turnID)
		}, 9*every + 2*time.Minute},
		"a command": {0, func(r *run) {
			item(r, "item/started", "inProgress")
			waits(r, 30)
			item(r, "item/completed", "completed")
		}, 30*every + 2*time.Minute},
		"a question": {0, func(r *run) {
			waits(r, 5)
			go r.askCommand(threadID, turnID) // it is open until shortly before the 25th time
			waits(r, 20)
		}, 25*every + 2*time.Minute},
		"a sub-agent": {0, func(r *run) {
			waits(r, 9)
			r.notify("item/started", `{"threadId":%q,"turnId":%q,"item":{"type":"subAgentActivity","id":"s","agentThreadId":%q,"agentPath":"/root/a","kind":"started"}}`, threadID, turnID, agentID)
			waits(r, 9)
			r.notify("item/agentMessage/delta", `{"threadId":%q,"turnId":"turn-a","itemId":"m","delta":"x"}`, agentID)
		}, 18*every + 2*time.Minute},
		"without a limit": {-1, func(r *run) {
			waits(r, 1000)
			r.complete("completed")
		}, 1000 * every},
	} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			f.turn = func(r *run) {
				tt.before(r)
				waits(r, 20)
			}
			h := &recorder{exec: func(context.Context, approval.Command) elicit.Outcome {
				time.Sleep(20*every - time.Second)
				return elicit.Outcome{Decision: elicit.Denied}
			}}
			conv := start(t, f.engine(appserver.Options{Codex: setting.Codex{Reconnect: tt.limit}}), h)
			begun := time.Now()
			err := conv.Turn(t.Context(), text("go"))
			must.Equal(t, "the end", tt.after, time.Since(begun))
			if tt.limit < 0 {
				must.OK(t, err)
				return
			}
			var failed *engine.TurnError
			words := fmt.Sprintf("the installed Codex has waited for the network for %v (Reconnecting... waiting for network: Connection failed [redacted]): there is no network, or a proxy is needed", cmp.Or(tt.limit, 2*time.Minute))
			if !errors.As(err, &failed) || !strings.Contains(failed.Message, words) || !slices.Contains(f.methods(), "turn/interrupt") {
				t.Errorf("error %v after %v, want %q", err, f.methods(), words)
			}
			f.mu.Lock()
			f.turn = answered
			f.mu.Unlock()
			must.OK(t, conv.Turn(t.Context(), text("on")))
		})
	}
}
