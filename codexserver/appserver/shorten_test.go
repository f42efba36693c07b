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
	"github.com/codexmcp/codexmcp/jsonrpc"
	gocmp "github.com/google/go-cmp/cmp"
)

// turnsOf answers thread/turns/list with one turn on each page, newest first. A turn is
// "prompt" or "summary".
func turnsOf(turns ...string) handler {
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

// TestRollback takes prompts back with the methods of several versions of Codex.
func TestRollback(t *testing.T) {
	ok := reply(`{"thread":{"id":"` + threadID + `","path":"/other.jsonl"}}`)
	one := reply(`{"thread":{"turns":[{"id":"a","items":[{"type":"userMessage"}]},{"id":"b","items":[{"type":"contextCompaction"}]}]}}`)
	old := refusal("thread/revert only supports paginated threads")
	for name, tt := range map[string]struct {
		n    int
		on   map[string]handler
		want []string // the methods, with the turn or the number
		err  string
	}{
		"today":                       {2, map[string]handler{"thread/revert": ok}, []string{"thread/revert old-2"}, ""},
		"too many":                    {3, map[string]handler{"thread/revert": ok}, nil, "only 2 prompts"},
		"the old form":                {2, map[string]handler{"thread/revert": old, "thread/rollback": ok}, []string{"thread/revert old-2", "thread/rollback 2"}, ""},
		"it cannot":                   {1, map[string]handler{"thread/revert": old}, []string{"thread/revert old-0"}, "summarise it with compact"},
		"too many for an old version": {2, map[string]handler{"thread/turns/list": refusal("unknown variant"), "thread/read": one, "thread/rollback": ok}, []string{"thread/read 0"}, "only 1 prompts"},
		"an old version":              {1, map[string]handler{"thread/turns/list": refusal("unknown variant"), "thread/rollback": ok}, []string{"thread/rollback 1"}, ""},
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
			f.turn = answered
			in := text("go on")
			in.Rollback = tt.n
			err := start(t, f.engine(appserver.Options{}), &recorder{}).Turn(t.Context(), in)
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
	in := text("go on")
	in.Compact = true
	if err := start(t, f.engine(appserver.Options{}), &recorder{}).Turn(ctx, in); err == nil {
		t.Error("the turn has completed")
	}
	if methods := f.methods(); slices.Contains(methods, "turn/start") || !slices.Contains(methods, "turn/interrupt") {
		t.Errorf("methods %q: want an interrupt, and no further turn", methods)
	}
}
