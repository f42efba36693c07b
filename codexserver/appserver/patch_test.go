package appserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestPatchOverAFile has Codex announce an add of a file that is there. The question and the events have the lines that are lost,
// and an approval of other lines is void.
func TestPatchOverAFile(t *testing.T) {
	for name, tt := range map[string]struct {
		asks      bool   // else Codex writes at once
		meanwhile string // what is there before the answer, "" for what was
		want      string // the answer
		says      string // by an event and to the model
	}{
		"asked":                {true, "", accepted, ""},
		"changed before that":  {true, "three\n", denied, "the approval does not count: FILE was changed while the question was open"},
		"under a policy never": {false, "", "", ""},
	} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			f.cwd = must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
			file := filepath.Join(f.cwd, "a")
			must.OK(t, os.WriteFile(file, []byte("one\ntwo\n"), 0o600))
			item := func(status string) string {
				return must.Get(jsonText(map[string]any{"type": "fileChange", "id": "p1", "status": status, "changes": []any{
					map[string]any{"path": file, "kind": map[string]any{"type": "add"}, "diff": "x\n"},
				}}))(t)
			}
			replaced := map[string]protocol.FileChange{file: {Update: &protocol.FileUpdate{UnifiedDiff: "@@ -1,2 +1 @@\n-one\n-two\n+x\n", Replaces: true}}}
			var asked *approval.Patch
			h := &recorder{patch: func(_ context.Context, q approval.Patch) elicit.Outcome {
				asked = &q
				if tt.meanwhile != "" {
					must.Check(t, os.WriteFile(file, []byte(tt.meanwhile), 0o600))
				}
				return elicit.Outcome{Decision: elicit.Approved}
			}}
			steers := f.keep("turn/steer")
			answer := ""
			f.turn = func(r *run) {
				r.item(threadID, turnID, item("inProgress"))
				synctest.Wait() // the announcement has been read
				if tt.asks {
					answer = r.ask(askPatch, "%s", patchParams)
				}
				status := "declined"
				if answer != denied {
					must.Check(t, os.WriteFile(file, []byte("x\n"), 0o600))
					status = "completed"
				}
				r.notify("item/completed", `{"threadId":%q,"turnId":%q,"item":%s}`, threadID, turnID, item(status))
				r.complete("completed")
			}
			must.OK(t, start(t, f.engine(appserver.Options{}), h).Turn(t.Context(), text("go")))
			must.Equal(t, "answer", tt.want, answer)
			if tt.asks {
				must.Equal(t, "asked", replaced, asked.Changes)
			}
			says, begun := strings.Replace(tt.says, "FILE", file, 1), false
			for _, m := range h.all() {
				switch e := m.(type) {
				case protocol.PatchApplyBegin:
					begun = true
					must.Equal(t, "begun", replaced, e.Changes)
				case protocol.PatchApplyEnd:
					must.Equal(t, "done", "Success. Updated the following files:\nM "+file+"\n", e.Stdout)
				case protocol.BackgroundEvent:
					if e.Refused == nil || e.Refused.Reason != says {
						t.Errorf("%+v", e)
					}
				}
			}
			if begun != (says == "") || says != "" && !strings.Contains(strings.Join(*steers, ""), says) {
				t.Errorf("events %v, the model is told %q", h.types(), *steers)
			}
			if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
				t.Error("the test plays no Codex")
			}
		})
	}
}

func jsonText(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

// TestInterruptedAtOnce interrupts the first turn of a conversation. Codex may not have made its file yet, without which the next
// app-server would not find it.
func TestInterruptedAtOnce(t *testing.T) {
	for name, there := range map[string]bool{"no file": false, "a file": true} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			f.rollout = filepath.Join(t.TempDir(), "rollout.jsonl")
			if there {
				must.OK(t, os.WriteFile(f.rollout, nil, 0o600))
			}
			sent := f.keep("thread/inject_items")
			conv := start(t, f.engine(appserver.Options{}), &recorder{})
			ctx, stop := context.WithCancel(t.Context())
			end := begin(ctx, conv, text("go"))
			synctest.Wait()
			stop()
			if err := <-end; !errors.As(err, new(*engine.AbortError)) {
				t.Errorf("it ended with %v", err)
			}
			want := ""
			if !there {
				want = `{"items":[{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}],"threadId":"` + threadID + `"}`
			}
			must.Equal(t, "saved", want, strings.Join(*sent, " "))
		})
	}
}
