package appserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	gocmp "github.com/google/go-cmp/cmp"
)

var readOnly = protocol.Config{Sandbox: protocol.SandboxReadOnly, ApprovalPolicy: protocol.ApprovalNever, ReadOnly: true}

const (
	findings = `{"findings":[]}`
	other    = "0199a2b3-0000-7000-8000-000000000002"
)

// TestReview checks that Codex gets the task in a turn of a thread that can only read, and that
// no later turn can do more. A conversation that is not read-only is reviewed by another thread, which is
// deleted, also if the review is interrupted.
func TestReview(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg    protocol.Config
		review protocol.Review
		thread string // of the turn
		cut    bool
	}{
		"read-only":   {readOnly, protocol.Review{Target: protocol.ReviewCommit, Revision: "abc", Instructions: "i"}, threadID, false},
		"in a thread": {protocol.Config{}, protocol.Review{Target: protocol.ReviewUncommitted}, other, false},
		"interrupted": {protocol.Config{}, protocol.Review{Target: protocol.ReviewUncommitted}, other, true},
	} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			f.config = json.RawMessage(`{"mcp_servers":{"evil":{"command":"touch"},"more":{"url":"http://x"}}}`)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			enough := errors.New("enough")
			f.turn = func(r *run) { r.say(findings); r.complete("completed") }
			if tt.cut {
				f.turn = func(*run) { cancel(enough) }
			}
			sent := map[string]*[]string{}
			for _, method := range []string{"thread/start", "turn/start", "turn/interrupt", "thread/inject_items", "thread/delete"} {
				sent[method] = f.keep(method)
			}
			h := &recorder{}
			if tt.cfg.ReadOnly {
				f.policy = `"never"`
			}
			conv, err := f.engine(appserver.Options{}).Start(t.Context(), tt.cfg, h)
			if err != nil {
				t.Fatal(err)
			}
			f.mu.Lock()
			f.policy, f.thread = `"never"`, tt.thread
			f.mu.Unlock()
			err = conv.Turn(ctx, protocol.TurnInput{Items: protocol.TextInput("p"), Review: &tt.review})
			synctest.Wait() // the other thread is deleted after the turn
			if answer := map[bool]string{false: findings}[tt.cut]; h.answer() != answer || tt.cut != errors.Is(err, enough) || !tt.cut && err != nil || h.count("turn_aborted") == 1 != tt.cut || h.count("session_configured") != 1 {
				t.Errorf("%v, %s, %v", err, h.answer(), h.types())
			}
			want := []string{fmt.Sprintf(`{"approvalPolicy":"never","input":[{"text":"p","type":"text"}],"sandboxPolicy":{"networkAccess":false,"type":"readOnly"},"threadId":%q}`, tt.thread)}
			if d := gocmp.Diff(want, *sent["turn/start"]); d != "" {
				t.Errorf("turn/start (-want +got)\n%s", d)
			}
			threads, deletes, interrupts := *sent["thread/start"], strings.Join(*sent["thread/delete"], ""), strings.Join(*sent["turn/interrupt"], "")
			n, deleted := 1, ""
			if tt.thread == other {
				n, deleted = 2, fmt.Sprintf(`{"threadId":%q}`, other)
			}
			if len(threads) != n || n == 2 && strings.Contains(threads[0], "never") || deletes != deleted || strings.Contains(interrupts, other) != tt.cut {
				t.Errorf("threads %q, deleted %s, interrupted %s", threads, deletes, interrupts)
			}
			for _, part := range []string{`"sandbox":"read-only"`, `"approvalPolicy":"never"`, `"mcp_servers.evil.enabled":false`, `"mcp_servers.more.enabled":false`, `"web_search":"disabled"`} {
				if !strings.Contains(threads[len(threads)-1], part) {
					t.Errorf("thread/start lacks %s: %s", part, threads)
				}
			}
			injected := strings.Join(*sent["thread/inject_items"], "")
			if learns := tt.thread == other && !tt.cut; learns != strings.Contains(injected, conv.ID()) || learns != strings.Contains(injected, "What it found:\\n\\n{") {
				t.Errorf("injected %s", injected)
			}
		})
	}
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
