package appserver_test

import (
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	turnpkg "github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestRefusedByCodex checks that the result of a turn has what Codex declined by its own policy, and what
// no question could show.
func TestRefusedByCodex(t *testing.T) {
	item := `{"type":"commandExecution","id":"c1","command":"/bin/sh -c 'rm x'","cwd":"/work","status":"declined","commandActions":[]}`
	for _, tt := range []struct {
		name string
		play func(r *run)
		want []string
	}{
		{name: "a declined item", play: func(r *run) {
			r.item(threadID, r.current(), command)
			r.notify("item/completed", `{"threadId":%q,"turnId":%q,"item":`+item+`}`, threadID, r.current())
		}, want: []string{"command /bin/sh -c 'rm x' in  by policy, policy: declined by the policy of Codex"}},
		{name: "an item that a person declined", play: func(r *run) {
			r.item(threadID, r.current(), command)
			asks(r)
			r.notify("item/completed", `{"threadId":%q,"turnId":%q,"item":`+item+`}`, threadID, r.current())
		}, want: []string{"command /bin/sh -c 'rm x' in  by nobody, unsupported: this MCP client cannot show approval requests"}},
		{name: "a request that no question shows", play: func(r *run) {
			r.ask("item/commandExecution/requestApproval", `{"kind":"command","threadId":%q,"turnId":%q,"itemId":"c9","command":"touch x","cwd":"/work","startedAtMs":1,"additionalPermissions":{"network":{"enabled":true}}}`, threadID, r.current())
		}, want: []string{"other item/commandExecution/requestApproval in  by policy, policy: it asks for further permissions, which a question about a command does not show"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			f.turn = func(r *run) {
				tt.play(r)
				r.complete("completed")
			}
			share := thread.NewTable(f.engine(appserver.Options{}), &approve.Options{}).Share("")
			defer share.Close()
			c := turnpkg.New(changes.Options{})
			a := thread.Attend{Turn: c, Awaited: true}
			th, err := share.Start(t.Context(), protocol.Config{Cwd: "/work"}, a)
			if err != nil {
				t.Fatal(err)
			}
			_ = th.Begin(a, text("go")).Run(t.Context()) // its end is the subject of others
			var got []string
			for _, r := range c.So().Refused {
				got = append(got, fmt.Sprintf("%s %s in %s by %s, %s: %s", r.Kind, r.What, r.Cwd, r.By, r.Reason, r.Why))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error("(-want +got)\n" + d)
			}
		})
	}
}
