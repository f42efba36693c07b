package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRefusedFolderHasNoRepository looks for no repository in a folder that the call may not have.
func TestRefusedFolderHasNoRepository(t *testing.T) {
	repo := filepath.Join(t.TempDir(), "repo")
	for _, name := range []string{"objects", "refs"} {
		must.OK(t, os.MkdirAll(filepath.Join(repo, ".git", name), 0o700))
	}
	head, file := filepath.Join(repo, ".git", "HEAD"), filepath.Join(repo, "file")
	must.OK(t, os.WriteFile(head, []byte("ref: refs/heads/main\n"), 0o600), os.WriteFile(file, nil, 0o600))
	c := newClient(t, &Options{Calls: setting.Calls{Folders: []string{repo}}, Home: testenv.Home(t)})
	events := must.Get(syscall.InotifyInit1(syscall.IN_NONBLOCK))(t)
	t.Cleanup(func() { must.OK(t, syscall.Close(events)) })
	must.Get(syscall.InotifyAddWatch(events, head, syscall.IN_OPEN))(t)
	for cwd, want := range map[string]bool{repo: true, file: false} {
		for tool, arguments := range map[string]string{
			codexTool.name: `{"prompt":"x","worktree":true,"cwd":%q}`, reviewTool.name: `{"target":"uncommitted","cwd":%q}`,
		} {
			c.call(t.Context(), nil, tool, fmt.Sprintf(arguments, cwd))
			n, _ := syscall.Read(events, make([]byte, 4096)) // an error when there are none
			if looked := n > 0; looked != want {
				t.Errorf("%s in %s looked for a repository: %t, want %t", tool, cwd, looked, want)
			}
		}
	}
}
