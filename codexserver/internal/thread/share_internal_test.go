package thread

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestWritable checks where a call may have commands write without a question.
func TestWritable(t *testing.T) {
	testenv.NeedsLinks(t)
	top := boxtest.Folder(t)
	at := func(name string) string { return filepath.Join(top, filepath.FromSlash(name)) }
	boxtest.Lay(t, top, "home/app/src/", "home/.ssh/", "home/.codex/codex-mcp-worktrees/a/", "srv/app/", "srv/other/", "link -> srv")
	for _, tt := range []struct {
		folders []string
		path    string
		want    bool
	}{
		{[]string{"home/app"}, "home/app", true}, {[]string{"home/app"}, "home/app/src", true}, {[]string{"home/app"}, "home/app/missing", true},
		{[]string{"home/app"}, "home", false}, {[]string{"home/app"}, "home/application", false}, {[]string{"home/app/src"}, "home/app", false},
		{[]string{"home"}, "home", false}, {[]string{"home"}, "home/app", false}, {[]string{"home/.ssh"}, "home/.ssh", false},
		{[]string{"."}, "home/app", false}, {[]string{"."}, "srv/app", false}, {[]string{"/"}, "srv/app", false}, {[]string{"link"}, "srv/app", true},
		{[]string{"srv/app"}, "srv/other", false}, {[]string{"missing"}, "missing", false}, {nil, "srv/app", false},
		{nil, "home/.codex/codex-mcp-worktrees/a", true}, {nil, "home/.codex/codex-mcp-worktrees", false}, {nil, "home/.codex", false},
		{[]string{"srv/app", "home/app"}, "home/app/src", true},
	} {
		var folders []string
		for _, f := range tt.folders {
			if f != "/" {
				f = at(f)
			}
			folders = append(folders, f)
		}
		must.Equal(t, fmt.Sprintf("%q in %q", tt.path, tt.folders), tt.want, writable(folders, at("home/.codex/codex-mcp-worktrees"), at("home"))(at(tt.path)))
	}
	// Of two homes, that of a client hides nothing of the server's.
	if writable([]string{at("home/work"), at("home/.config")}, "", at("home"), at("other"))(at("home/.config")) {
		t.Error("a client's home opens hidden folders of the server's")
	}
	if runtime.GOOS != "windows" && writable([]string{"/"}, "", "")("/etc") {
		t.Error("the root counts as a folder of work")
	}
}

// TestBeyond checks what of an access is asked about.
func TestBeyond(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Sandbox)
	dir := boxtest.Folder(t)
	inside := func(a protocol.Access) protocol.Access { a.Folder = dir; return a }
	for _, tt := range []struct{ has, want protocol.Access }{
		{}, {inside(protocol.Access{}), protocol.Access{}},
		{inside(protocol.Access{Mode: protocol.SandboxWorkspaceWrite}), inside(protocol.Access{})},
		{inside(protocol.Access{Mode: protocol.SandboxWorkspaceWrite, Roots: []string{filepath.Join(dir, "sub")}}), inside(protocol.Access{})},
		{inside(protocol.Access{Mode: protocol.SandboxWorkspaceWrite, Roots: []string{"/elsewhere"}}), inside(protocol.Access{Roots: []string{"/elsewhere"}})},
		{inside(protocol.Access{Mode: protocol.SandboxWorkspaceWrite, Network: true}), inside(protocol.Access{Network: true})},
		{inside(protocol.Access{Mode: protocol.SandboxDangerFullAccess}), inside(protocol.Access{Mode: protocol.SandboxDangerFullAccess})},
		{inside(protocol.Access{Policy: protocol.ApprovalNever}), inside(protocol.Access{Policy: protocol.ApprovalNever})},
		{inside(protocol.Access{Provider: "x"}), inside(protocol.Access{Provider: "x"})},
		{
			protocol.Access{Folder: "/elsewhere", Mode: protocol.SandboxWorkspaceWrite},
			protocol.Access{Folder: "/elsewhere", Mode: protocol.SandboxWorkspaceWrite},
		},
	} {
		c := &Caller{Folders: func(context.Context) []string { return []string{dir} }}
		if got := c.beyond(t.Context(), tt.has); !got.Equal(tt.want) {
			t.Errorf("%+v: %+v, want %+v", tt.has, got, tt.want)
		}
		for _, all := range []*Caller{nil, {FullAccess: setting.FullAccessAllow}} {
			if got := all.beyond(t.Context(), tt.has); !got.IsZero() {
				t.Errorf("%+v is asked about: %+v", tt.has, got)
			}
		}
	}
}

// singleEngine is an engine with one conversation. It records the host of the last attempt to open it.
type singleEngine struct{ host engine.Host }

func (o *singleEngine) Start(_ context.Context, _ protocol.Config, h engine.Host) (engine.Conversation, error) {
	o.host = h
	return o, nil
}

func (o *singleEngine) Resume(_ context.Context, _ engine.Saved, _ protocol.Config, h engine.Host) (engine.Conversation, error) {
	o.host = h
	h.Emit(protocol.AgentMessage{Message: "said before"})
	return o, nil
}

func (o *singleEngine) Find(context.Context, string) (engine.Saved, error) {
	return engine.Saved{ID: "1"}, nil
}
func (o *singleEngine) ID() string                                     { return "1" }
func (o *singleEngine) Turn(context.Context, protocol.TurnInput) error { return nil }
func (o *singleEngine) Close() error                                   { return nil }

// TestForeignLog closes the log of a thread that another principal holds open.
func TestForeignLog(t *testing.T) {
	e := &singleEngine{}
	table := NewTable(e, &approve.Options{})
	if _, err := table.Share("alice").Start(t.Context(), protocol.Config{}, Attend{}); err != nil {
		t.Fatal(err)
	}
	resumed := func() protocol.Config { return protocol.Config{} }
	if _, err := table.Share("bob").Revive(t.Context(), "another name of it", Attend{}, resumed); err == nil {
		t.Fatal("a foreign thread was resumed")
	}
	if page, err := e.host.(*host).kept.Transcript(0, 100); err == nil && page.Text != "" {
		t.Errorf("the log still holds %q", page.Text)
	}
}

// TestOpenOnly: only who started the server sees threads that nobody has open, since their rollouts
// do not say whose they are.
func TestOpenOnly(t *testing.T) {
	table := NewTable(&singleEngine{}, &approve.Options{})
	if table.Share("").OpenOnly() || !table.Share("alice").OpenOnly() {
		t.Error("a principal is shown rollouts, or who started the server is not")
	}
}

// TestWhyOf names the files of a patch that other programs run or obey: by their names, by the names that a move or a link
// gives them, and what the engine says of them.
func TestWhyOf(t *testing.T) {
	added := protocol.FileChange{Add: &protocol.FileContent{Content: "x\n"}}
	moved := func(to string) protocol.FileChange {
		return protocol.FileChange{Update: &protocol.FileUpdate{MovePath: &to}}
	}
	got := whyOf(&protocol.PatchApprovalRequest{
		Cwd: "/w",
		Changes: map[string]protocol.FileChange{
			"/w/src/a": added, "/w/Package.JSON": added, "/w/.github/workflows/x.yml": added, "/w/.git/hooks/x": added,
			"/w/b": moved("/w/sub/Makefile"), "/w/real": added, "/w/c": added,
		},
		Links: map[string]string{"/w/real": "/w/AGENTS.md"},
		Why:   map[string]string{"/w/c": "the engine says so"},
	})
	want := map[string]string{
		"/w/Package.JSON": othersStart, "/w/.github/workflows/x.yml": othersStart, "/w/.git/hooks/x": othersRun, "/w/sub/Makefile": othersStart,
		"/w/real": othersStart, "/w/c": "the engine says so",
	}
	must.Equal(t, "the reasons", want, got)
}
