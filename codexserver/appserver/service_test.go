package appserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestServices compares each method of the optional interfaces with what the real
// app-server was sent, and with what it answered.
func TestServices(t *testing.T) {
	no, five := false, 5
	for _, test := range []struct {
		name, method, reply string
		call                func(context.Context, *appserver.Engine) (any, error)
		sent, want          string
		fails               error // to which reply leads as an error of Codex
	}{
		{"List with holders", "thread/list", `{"data":[{"id":"a","name":"A name","cwd":"/w","preview":"hi","status":{"type":"idle"}},
				{"id":"b","name":null,"cwd":"/x","status":{"type":"active"}},{"id":"c","cwd":"/y","status":{"type":"notLoaded"}}],"nextCursor":null}`,
			func(ctx context.Context, e *appserver.Engine) (any, error) {
				page, err := e.List(ctx, protocol.ListConversationsParams{})
				var got []string
				for _, c := range page.Items {
					got = append(got, c.ConversationID+" "+c.Title+" "+c.Cwd+": "+c.Holder)
				}
				return got, err
			},
			`{"limit":25}`, `["a A name /w: this server","b  /x: this server","c  /y: "]`, nil},
		{"List by a bad cursor", "thread/list", "invalid cursor: bogus",
			func(ctx context.Context, e *appserver.Engine) (any, error) {
				return e.List(ctx, protocol.ListConversationsParams{Cursor: "bogus"})
			},
			`{"limit":25,"cursor":"bogus"}`, "", engine.ErrCursor},
		{"Find what is unknown", "thread/read", "no rollout found for thread id " + threadID,
			func(ctx context.Context, e *appserver.Engine) (any, error) { return e.Find(ctx, threadID) },
			`{"threadId":"` + threadID + `"}`, "", engine.ErrNotFound},
		{"Find what is no id", "thread/read", "not asked",
			func(ctx context.Context, e *appserver.Engine) (any, error) { return e.Find(ctx, "abc") },
			"", "", engine.ErrNotFound},
		{"List", "thread/list",
			`{"data":[{"id":"` + threadID + `","path":"/r.jsonl","preview":"hi","createdAt":1795157676,"turns":[]}],"readStates":{},"nextCursor":"c2","backwardsCursor":null}`,
			func(ctx context.Context, e *appserver.Engine) (any, error) {
				return e.List(ctx, protocol.ListConversationsParams{PageSize: &five, Cursor: "c1"})
			},
			`{"limit":5,"cursor":"c1"}`,
			`{"Items":[{"ConversationID":"` + threadID + `","Path":"/r.jsonl","Preview":"hi","Timestamp":"2026-11-20T06:54:36Z","Title":"","Cwd":"","Origin":"","Holder":"","News":""}],"NextCursor":"c2"}`, nil},
		{"AuthStatus", "getAuthStatus", `{"authMethod":"apikey","authToken":null,"requiresOpenaiAuth":true}`,
			func(ctx context.Context, e *appserver.Engine) (any, error) {
				return e.AuthStatus(ctx, protocol.GetAuthStatusParams{IncludeToken: &no})
			},
			`{"includeToken":false}`, `{"authMethod":"apikey","requiresOpenaiAuth":true}`, nil},
		{"Logout", "account/logout", `{}`,
			func(ctx context.Context, e *appserver.Engine) (any, error) { return nil, e.Logout(ctx) },
			``, `null`, nil},
		{"SearchFiles", "fuzzyFileSearch",
			`{"files":[{"root":"/w","path":"dir","match_type":"directory","file_name":"dir","score":9,"indices":[0]},{"root":"/w","path":"a.go","match_type":"file","file_name":"a.go","score":5,"indices":[0]}]}`,
			func(ctx context.Context, e *appserver.Engine) (any, error) {
				return e.SearchFiles(ctx, protocol.FuzzyFileSearchParams{Query: "a", Roots: []string{"/w"}})
			},
			`{"query":"a","roots":["/w"]}`,
			`{"files":[{"root":"/w","path":"a.go","file_name":"a.go","score":5,"indices":[0]}]}`, nil},
		{"RateLimits", "account/rateLimits/read", `{"rateLimits":{"primary":{"usedPercent":42,"windowDurationMins":300,"resetsAt":946684860},"secondary":null,"planType":"plus"}}`,
			func(ctx context.Context, e *appserver.Engine) (any, error) { return e.RateLimits(ctx) },
			``, `{"primary":{"used_percent":42,"window_minutes":300,"resets_in_seconds":60},"secondary":null}`, nil},
		{"RateLimits of none", "account/rateLimits/read", `{"rateLimits":{"primary":null,"secondary":null}}`,
			func(ctx context.Context, e *appserver.Engine) (any, error) { return e.RateLimits(ctx) },
			``, `null`, nil},
		{"Find", "thread/read", `{"thread":{"id":"` + threadID + `","path":"/r.jsonl"}}`,
			func(ctx context.Context, e *appserver.Engine) (any, error) { return e.Find(ctx, threadID) },
			`{"threadId":"` + threadID + `"}`, `{"ID":"` + threadID + `","File":"/r.jsonl"}`, nil},
	} {
		inBubble(t, test.name, func(t *testing.T, f *fake) {
			sent := ""
			f.on[test.method] = func(_ *run, req *jsonrpc.Request) (any, error) {
				sent = string(req.Params)
				if test.fails != nil {
					return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", test.reply)
				}
				return json.RawMessage(test.reply), nil
			}
			got, err := test.call(t.Context(), f.engine(appserver.Options{}))
			if !errors.Is(err, test.fails) {
				t.Fatalf("error %v", err)
			}
			must.Equal(t, "sent", loose(t, test.sent), loose(t, sent))
			if test.fails != nil {
				return
			}
			raw := must.Get(json.Marshal(got))(t)
			must.Equal(t, "result", loose(t, test.want), loose(t, string(raw)))
		})
	}
}

func loose(t *testing.T, text string) any {
	t.Helper()
	if text == "" {
		return nil
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rollout-2026-11-20T06-56-00-"+threadID+".jsonl")
	must.OK(t, os.WriteFile(path, nil, 0o600))
	bubble(t, func(t *testing.T, f *fake) {
		f.on["thread/resume"] = func(*run, *jsonrpc.Request) (any, error) {
			return json.RawMessage(`{"thread":{"id":"` + threadID + `","path":"/r.jsonl","turns":[{"id":"t0","status":"completed","items":[
				{"type":"userMessage","id":"u","content":[{"type":"text","text":"hi"},{"type":"image","url":"data:x"}]},
				{"type":"commandExecution","id":"c","command":"ls","status":"completed","commandActions":[],"cwd":"/"},
				{"type":"reasoning","id":"r","summary":["thought"],"content":[]},
				{"type":"agentMessage","id":"a","text":"hello"}]}]},
				"model":"m","modelProvider":"mock","cwd":"/work","approvalPolicy":{"granular":{}},"sandbox":{"type":"readOnly"}}`), nil
		}
		h := &recorder{}
		conv, err := f.engine(appserver.Options{}).Resume(t.Context(), savedAt(path), protocol.Config{}, h)
		if err != nil || conv.ID() != threadID {
			t.Fatal(err)
		}
		want := []any{
			map[string]any{"type": "user_message", "message": "hi", "kind": "plain", "images": []any{"data:x"}},
			map[string]any{"type": "agent_reasoning", "text": "thought"},
			map[string]any{"type": "agent_message", "message": "hello"},
		}
		var got []any
		for _, raw := range h.all()[0].(protocol.SessionConfigured).InitialMessages {
			got = append(got, loose(t, string(raw)))
		}
		must.Equal(t, "initial messages", want, got)
	})
}

// TestResumeUnknown resumes what Codex does not know, and what is no conversation.
func TestResumeUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on["thread/resume"] = refusal("no rollout found for thread id " + threadID)
		e := f.engine(appserver.Options{})
		if _, err := e.Resume(t.Context(), savedAt("/x/rollout-"+threadID+".jsonl"), protocol.Config{}, &recorder{}); !errors.Is(err, engine.ErrNotFound) {
			t.Error(err)
		}
		var refused *engine.RefusedError
		if _, err := e.Resume(t.Context(), savedAt("/etc/passwd"), protocol.Config{}, &recorder{}); !errors.As(err, &refused) {
			t.Error(err)
		}
	})
}

// savedAt returns the conversation of a file, whose name ends in the id.
func savedAt(path string) engine.Saved {
	name := strings.TrimSuffix(path, ".jsonl")
	return engine.Saved{ID: name[max(0, len(name)-len(threadID)):], File: path}
}
