package appserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	reports "github.com/codexmcp/codexmcp/codexserver/internal/report"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestRefusedByCodex checks that the result of a turn has what Codex rejected by its own
// policy: declined items without a question, and calls whose rejection is only in the rollout.
func TestRefusedByCodex(t *testing.T) {
	call := func(id, cmd, output string) string {
		arguments, _ := json.Marshal(map[string]string{"cmd": cmd})
		quoted, _ := json.Marshal(string(arguments))
		out, _ := json.Marshal(output)
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":%s,"call_id":%q}}`+"\n"+
			`{"type":"response_item","payload":{"type":"function_call_output","call_id":%q,"output":%s}}`+"\n", quoted, id, id, out)
	}
	const done = `{"type":"event_msg","payload":{"type":"task_complete"}}` + "\n"
	const patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: /etc/x\n+x\n*** End Patch\nEOF\n"
	item := `{"type":"commandExecution","id":"c1","command":"/bin/sh -c 'rm x'","cwd":"/work","status":"declined","commandActions":[]}`
	for _, tt := range []struct {
		name    string
		rollout string // written before the turn
		more    string // written during the turn
		play    func(r *run)
		want    []string
	}{
		{name: "a declined item", play: func(r *run) {
			r.item(threadID, r.current(), command)
			r.notify("item/completed", `{"threadId":%q,"turnId":%q,"item":`+item+`}`, threadID, r.current())
		}, want: []string{"command /bin/sh -c 'rm x' in  by engine, policy: declined by the policy of Codex"}},
		{name: "an item that a person declined", play: func(r *run) {
			r.item(threadID, r.current(), command)
			asks(r)
			r.notify("item/completed", `{"threadId":%q,"turnId":%q,"item":`+item+`}`, threadID, r.current())
		}, want: []string{"command /bin/sh -c 'rm x' in  by client, unsupported: this MCP client cannot show approval requests"}},
		{name: "a request that no question shows", play: func(r *run) {
			r.ask("item/commandExecution/requestApproval", `{"kind":"command","threadId":%q,"turnId":%q,"itemId":"c9","command":"touch x","cwd":"/work","startedAtMs":1,"additionalPermissions":{"network":{"enabled":true}}}`, threadID, r.current())
		}, want: []string{"other item/commandExecution/requestApproval in  by engine, policy: it asks for further permissions, which a question about a command does not show"}},
		{name: "rejected calls", rollout: call("e0", "old", `exec_command failed: CreateProcess { message: "Rejected(\"old\")" }`), more: "" +
			call("e1", "touch x", "approval policy is Never; reject command — you cannot ask for escalated permissions if the approval policy is Never") +
			call("e2", "rm -rf /x", `exec_command failed: CreateProcess { message: "Rejected(\"`+"`/bin/bash -lc 'rm -rf /x'`"+` rejected: no \\\"rm -f\\\" here\")" }`) +
			call("e3", "asked", `exec_command failed: CreateProcess { message: "Rejected(\"rejected by user\")" }`) +
			call("e6", "torn", `exec_command failed: CreateProcess { message: "Rejected(\"torn`) +
			call("e4", "ls", "Chunk ID: 1\nOutput:\napproval policy is Never; reject command") +
			call("e5", patch, "patch rejected: writing outside of the project; rejected by user approval settings") +
			call("c1", "rm x", "patch rejected by user") + "{torn",
			want: []string{
				"command bash -lc 'touch x' in  by engine, policy: approval policy is Never; reject command — you cannot ask for escalated permissions if the approval policy is Never",
				"command bash -lc 'rm -rf /x' in  by engine, policy: `/bin/bash -lc 'rm -rf /x'` rejected: no \"rm -f\" here",
				"patch /etc/x in  by engine, policy: patch rejected: writing outside of the project; rejected by user approval settings",
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rollout.jsonl")
			if err := os.WriteFile(path, []byte(tt.rollout), 0o600); err != nil {
				t.Fatal(err)
			}
			f := newFake(t)
			f.rollout = path
			f.turn = func(r *run) {
				if tt.play != nil {
					tt.play(r)
				}
				if err := os.WriteFile(path, []byte(tt.rollout+done+tt.more), 0o600); err != nil {
					t.Error(err)
				}
				r.complete("completed")
			}
			share := thread.NewTable(f.engine(appserver.Options{}), &board.Options{}).Share("")
			defer share.Close()
			log := turnlog.NewTurn()
			c := reports.New(log, reports.Options{})
			a := thread.Attendance{Turn: log, Observers: []thread.Observer{servertest.Watcher{Watch: c}}, Awaited: true}
			th, err := share.Start(t.Context(), protocol.Config{Cwd: "/work"}, a)
			if err != nil {
				t.Fatal(err)
			}
			a.Begin = func(ctx context.Context) { c.Begin(ctx, th.Info(), nil) }
			c.End(th.Turn(t.Context(), th.Queue(), a, text("go")))
			var got []string
			for _, r := range c.Report().Refused {
				got = append(got, fmt.Sprintf("%s %s in %s by %s, %s: %s", r.Kind, r.What, r.Cwd, r.By, r.Reason, r.Why))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error("(-want +got)\n" + d)
			}
		})
	}
}
