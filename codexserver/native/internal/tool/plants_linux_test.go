package tool_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestPlants says what a command made that other programs run, and renames what git would take for its configuration.
func TestPlants(t *testing.T) {
	boxtest.Need(t)
	for _, tt := range []struct{ script, names, gone string }{
		{"mkdir .vscode && echo x >.vscode/tasks.json", ".vscode, .vscode/tasks.json", ""},
		{"echo y >.envrc", ".envrc", ""},
		{"echo y >.mcp.json; touch -r file .mcp.json", ".mcp.json", ""},
		{"mkdir -p a/b/.Idea; echo x >a/b/.Idea/workspace.xml", "a/b/.Idea, a/b/.Idea/workspace.xml", ""},
		{"ln -s /tmp a/.claude", "a/.claude", ""},
		{"mkdir a/.git; echo x >a/.git/config", "a/.git, a/.git/config", ""},
		{"cp .git/HEAD .git/commondir", ".git/commondir (renamed to commondir.made-in-the-sandbox)", ".git/commondir"},
		{"mkdir .git/hooks; echo x >.git/hooks/post-checkout", ".git/hooks (renamed to hooks.made-in-the-sandbox), .git/hooks/post-checkout", ".git/hooks"},
		{"echo x >other; mkdir d; echo y >>file; echo x >.git/index; rm .envrc", "", ""},
		{"exit 3", "", ""},
		{"echo x >tools/hooks/pre-push; echo x >>tools/git/one; echo x >tools/git/two; echo x >tools/git/three", "tools/git/one, tools/git/two, tools/hooks/pre-push", ""},
	} {
		work := boxtest.FolderOutsideTmp(t)
		boxtest.Lay(t, work, ".git/HEAD=ref: x", ".git/config=[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../tools/git/one\n\tpath = ../pipe\n",
			"tools/hooks/", "tools/git/one=[includeIf \"gitdir:x\"] path = \"two\" # more\n", ".envrc=x", ".mcp.json=x", "a/b/", "file=x")
		must.OK(t, syscall.Mkfifo(work+"/pipe", 0o600))
		writer := must.Get(os.OpenFile(work+"/pipe", os.O_RDWR, 0))(t) // so that a read would wait
		h := &host{}
		turn := turnOf(tool.Options{Sandbox: tool.Confine(box.New(box.Options{}))}, h, work, protocol.ApprovalNever, protocol.SandboxWorkspaceWrite)
		res := called(t, turn, shellCall("", "sh", "-c", tt.script))
		_ = writer.Close()
		_, said, _ := strings.Cut(res.Output, "run or obey unasked: ")
		said, _, _ = strings.Cut(said, ".)")
		must.Equal(t, tt.script, tt.names, strings.NewReplacer(work, "", `\"`, "").Replace(said))
		if tt.gone != "" {
			_, err := os.Lstat(filepath.Join(work, tt.gone))
			must.Equal(t, tt.gone+" is gone", true, os.IsNotExist(err))
		}
	}
}
