package appserver_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	turnpkg "github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/google/go-cmp/cmp"
)

// TestChanges looks at what a command of an app-server changes, whose place only the bridge knows: in a folder of a
// repository, in a writable root, and after the command, but before the end of the turn. Package turn has the kinds of changes.
func TestChanges(t *testing.T) {
	for _, tt := range []struct {
		name, cwd, act, user, want string
		roots                      bool
	}{
		{"in a folder", "d", "echo y >> a.txt; echo y > d/x", "", "update a.txt by command, add d/x by command", false},
		{"a writable root", "", "echo s > ../root/r", "", "add TOP/root/r by command", true},
		{"the user edits", "", "echo x >> a.txt", "echo u > u; rm a.txt", "delete a.txt by command, add u by command", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			dir, root := filepath.Join(top, "w"), filepath.Join(top, "root")
			shell := func(script string) {
				cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", script, err, out)
				}
			}
			if err := errors.Join(os.MkdirAll(filepath.Join(dir, "d"), 0o755), os.Mkdir(root, 0o755)); err != nil {
				t.Fatal(err)
			}
			shell("git init -q; echo one > a.txt; git add .; git -c user.name=a -c user.email=a@b commit -q -m first")
			f := newFake(t)
			f.cwd = filepath.Join(dir, tt.cwd)
			if tt.roots {
				f.config = map[string]any{"sandbox_mode": "workspace-write", "sandbox_workspace_write": map[string]any{"writable_roots": []string{root}}}
			}
			f.turn = func(r *run) {
				const item = `{"type":"commandExecution","id":"c0","command":"make","cwd":"/","status":%q,"exitCode":0,"commandActions":[]}`
				r.item(threadID, r.current(), fmt.Sprintf(item, "inProgress"))
				asks(r) // the answer comes after the events before
				shell(tt.act)
				r.notify("item/completed", `{"threadId":%q,"turnId":%q,"item":`+fmt.Sprintf(item, "completed")+`}`, threadID, r.current())
				asks(r)
				shell(tt.user)
				r.complete("completed")
			}
			e := f.engine(appserver.Options{})
			o := changes.Options{Scratch: git.Scratch{Dir: t.TempDir()}, Announced: engine.TraitsOf(e).Announces, Changes: setting.Changes{Before: time.Minute, After: time.Minute}}
			so, err := attended(t, e, f.cwd, o)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range so.Changes {
				got = append(got, fmt.Sprintf("%s %s by %s", c.Kind, strings.ReplaceAll(c.Path, top, "TOP"), c.By))
			}
			if all := strings.Join(got, ", "); all != tt.want {
				t.Errorf("%s, want %s", all, tt.want)
			}
		})
	}
}

// asks asks a question after the model's response has been counted.
func asks(r *run) {
	r.notify("thread/tokenUsage/updated", `{"threadId":%q,"turnId":%q,"tokenUsage":{"total":{"inputTokens":1},"last":{"inputTokens":1}}}`, threadID, r.current())
	r.askCommand(threadID, r.current())
}

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
			so, _ := attended(t, f.engine(appserver.Options{}), "/work", changes.Options{}) // its end is the subject of others
			var got []string
			for _, r := range so.Refused {
				got = append(got, fmt.Sprintf("%s %s in %s by %s, %s: %s", r.Kind, r.What, r.Cwd, r.By, r.Reason, r.Why))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error("(-want +got)\n" + d)
			}
		})
	}
}

// attended runs a turn of a thread as the server does, and returns its result.
func attended(t *testing.T, e engine.Engine, cwd string, o changes.Options) (protocol.TurnResult, error) {
	t.Helper()
	a := thread.Attend{Turn: turnpkg.New(o), Awaited: true}
	share := thread.NewTable(e, &approve.Options{}).Share("")
	defer share.Close()
	th, err := share.Start(t.Context(), protocol.Config{Cwd: cwd}, a)
	if err != nil {
		t.Fatal(err)
	}
	err = th.Begin(a, text("go")).Run(t.Context())
	return a.Turn.So(), err
}
