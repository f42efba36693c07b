package admit

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

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
		c := New(setting.Calls{}, "").Caller("", func(context.Context) []string { return []string{dir} })
		bounded := New(setting.Calls{Folders: []string{dir}}, "").Caller("", nil)
		for _, c := range []Caller{c, bounded, c.Resuming()} {
			if got := c.Beyond(t.Context(), tt.has); !got.Equal(tt.want) {
				t.Errorf("%+v: %+v, want %+v", tt.has, got, tt.want)
			}
		}
		for _, none := range []Caller{{}, New(setting.Calls{}, "").Caller("", nil)} {
			if got := none.Beyond(t.Context(), tt.has); !got.Equal(tt.has) && !tt.has.IsZero() {
				t.Errorf("%+v without folders: %+v", tt.has, got)
			}
		}
		free := setting.Calls{FullAccess: setting.FullAccessAllow}
		for _, all := range []Caller{Trusted(), New(free, "").Caller("", nil)} {
			if got := all.Beyond(t.Context(), tt.has); !got.IsZero() {
				t.Errorf("%+v is asked about: %+v", tt.has, got)
			}
		}
		for _, locked := range []string{"approval-policy", "sandbox"} { // which a resumed conversation does not keep
			free.LockedArguments = []string{locked}
			if got := New(free, "").Caller("", nil).Resuming().Beyond(t.Context(), tt.has); !got.Equal(tt.has) && !tt.has.IsZero() {
				t.Errorf("%+v is kept: %+v", tt.has, got)
			}
		}
	}
}
