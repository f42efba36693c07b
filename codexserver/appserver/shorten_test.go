package appserver_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	gocmp "github.com/google/go-cmp/cmp"
)

// turnsOf answers thread/turns/list with one turn on each page, newest first. A turn is
// "prompt" or "summary".
func turnsOf(turns ...string) func(*run, *jsonrpc.Request) (any, error) {
	return func(_ *run, req *jsonrpc.Request) (any, error) {
		var p struct{ Cursor string }
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return nil, err
		}
		at := len(p.Cursor) // the cursor of the page is as long as its number
		item := `{"type":"contextCompaction"}`
		if turns[at] == "prompt" {
			item = `{"type":"userMessage"}`
		}
		next := "null"
		if at+1 < len(turns) {
			next = fmt.Sprintf("%q", p.Cursor+"x")
		}
		return json.RawMessage(fmt.Sprintf(`{"data":[{"id":"old-%d","status":"completed","items":[%s]}],"nextCursor":%s}`, at, item, next)), nil
	}
}

func refusal(text string) func(*run, *jsonrpc.Request) (any, error) {
	return func(*run, *jsonrpc.Request) (any, error) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", text)
	}
}

// TestRollback takes prompts back with the methods of several versions of Codex.
func TestRollback(t *testing.T) {
	ok := func(*run, *jsonrpc.Request) (any, error) {
		return json.RawMessage(`{"thread":{"id":"` + threadID + `","path":"/other.jsonl"}}`), nil
	}
	one := func(*run, *jsonrpc.Request) (any, error) {
		return json.RawMessage(`{"thread":{"turns":[{"id":"a","items":[{"type":"userMessage"}]},{"id":"b","items":[{"type":"contextCompaction"}]}]}}`), nil
	}
	old := refusal("thread/revert only supports paginated threads")
	for name, tt := range map[string]struct {
		n    int
		on   map[string]func(*run, *jsonrpc.Request) (any, error)
		want []string // the methods, with the turn or the number
		err  string
	}{
		"today":                       {2, map[string]func(*run, *jsonrpc.Request) (any, error){"thread/revert": ok}, []string{"thread/revert old-2"}, ""},
		"too many":                    {3, map[string]func(*run, *jsonrpc.Request) (any, error){"thread/revert": ok}, nil, "only 2 prompts"},
		"the old form":                {2, map[string]func(*run, *jsonrpc.Request) (any, error){"thread/revert": old, "thread/rollback": ok}, []string{"thread/revert old-2", "thread/rollback 2"}, ""},
		"it cannot":                   {1, map[string]func(*run, *jsonrpc.Request) (any, error){"thread/revert": old}, []string{"thread/revert old-0"}, "summarise it with compact"},
		"too many for an old version": {2, map[string]func(*run, *jsonrpc.Request) (any, error){"thread/turns/list": refusal("unknown variant"), "thread/read": one, "thread/rollback": ok}, []string{"thread/read 0"}, "only 1 prompts"},
		"an old version":              {1, map[string]func(*run, *jsonrpc.Request) (any, error){"thread/turns/list": refusal("unknown variant"), "thread/rollback": ok}, []string{"thread/rollback 1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			var got []string
			f.on["thread/turns/list"] = turnsOf("prompt", "summary", "prompt")
			for method, answer := range tt.on {
				f.on[method] = func(r *run, req *jsonrpc.Request) (any, error) {
					var p struct {
						BeforeTurnID string
						NumTurns     int
					}
					if err := json.Unmarshal(req.Params, &p); err != nil {
						return nil, err
					}
					if method != "thread/turns/list" {
						got = append(got, method+" "+cmp.Or(p.BeforeTurnID, fmt.Sprint(p.NumTurns)))
					}
					return answer(r, req)
				}
			}
			f.turn = func(r *run) { r.say("the answer"); r.complete("completed") }
			h := &recorder{}
			conv, err := f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{}, h)
			if err != nil {
				t.Fatal(err)
			}
			in := text("go on")
			in.Rollback = tt.n
			err = conv.Turn(t.Context(), in)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if d := gocmp.Diff(tt.want, got); d != "" {
				t.Error("methods (-want +got)\n" + d)
			}
			if began := slices.Contains(f.methods(), "turn/start"); began != (tt.err == "") {
				t.Errorf("a turn has begun: %v", began)
			}
		})
	}
}

// TestCompactionIsInterrupted interrupts the turn in which Codex summarises.
func TestCompactionIsInterrupted(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.on["thread/compact/start"] = func(r *run, _ *jsonrpc.Request) (any, error) {
		r.mu.Lock()
		r.turns++
		r.mu.Unlock()
		go func() {
			r.notify("turn/started", `{"threadId":%q,"turn":{"id":%q,"status":"inProgress","items":[]}}`, threadID, r.current())
			cancel()
		}()
		return struct{}{}, nil
	}
	h := &recorder{}
	conv, err := f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{}, h)
	if err != nil {
		t.Fatal(err)
	}
	in := text("go on")
	in.Compact = true
	if err := conv.Turn(ctx, in); err == nil {
		t.Error("the turn has completed")
	}
	if methods := f.methods(); slices.Contains(methods, "turn/start") || !slices.Contains(methods, "turn/interrupt") {
		t.Errorf("methods %q: want an interrupt, and no further turn", methods)
	}
}
