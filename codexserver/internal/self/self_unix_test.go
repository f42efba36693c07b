//go:build unix

package self_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/self"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestStartedBy(t *testing.T) {
	dir := t.TempDir()
	bin, links, work := filepath.Join(dir, "bin"), filepath.Join(dir, "links"), filepath.Join(dir, "work")
	program, ending, other := filepath.Join(bin, "codex-mcp"), filepath.Join(bin, "server.exe"), filepath.Join(bin, "other")
	boxtest.Lay(t, dir, "bin/codex-mcp=\x7fELF", "bin/other=\x7fELG", "bin/server.exe=MZ of a server", "links/codex -> "+program, "links/a b -> "+program, "links/server -> "+ending, "work/mine -> "+program)
	must.OK(t, os.Link(program, filepath.Join(links, "hard")))
	if !self.New(ending).StartedBy([]string{"other", "server"}, work, map[string]string{"PATH": links}) {
		t.Error("not found without its ending")
	}
	if self.New(ending).StartedBy([]string{strings.TrimSuffix(ending, ".exe")}, work, nil) {
		t.Error("found by a path that no file has")
	}
	p := self.New(program)
	for _, tt := range []struct {
		name string
		argv []string
		want bool
	}{
		{"its path", []string{program}, true},
		{"its name", []string{"codex-mcp", "mcp-server"}, true},
		{"a link in the PATH", []string{"codex", "mcp-server"}, true},
		{"a hard link", []string{filepath.Join(links, "hard")}, true},
		{"a relative link", []string{"./mine"}, true},
		{"sh -c with a variable", []string{"sh", "-c", "$D/codex-mcp"}, true},
		{"sh -c with a variable and another", []string{"sh", "-c", "$D/not-codex-mcp"}, false},
		{"another program's argument with a variable", []string{"other", "$D/codex-mcp"}, true},
		{"another program", []string{other, "mcp-server"}, false},
		{"a name that is not there", []string{"nosuch", "mcp-server"}, false},
		{"env", []string{"env", "-u", "A", "B=c", "codex-mcp"}, true},
		{"sh -c", []string{"sh", "-c", "cd /tmp && exec codex mcp-server 2>/dev/null"}, true},
		{"sh -c with home", []string{"bash", "-lc", "~/bin/codex-mcp"}, true},
		{"sh -c of another", []string{"sh", "-c", "exec other mcp-server"}, false},
		{"npx of Codex's package", []string{"npx", "-y", "@openai/codex", "mcp-server"}, false},
		{"a proxy with a path", []string{"other", "--command=" + program}, true},
		{"a link's name that is an argument", []string{"other", "--client", "codex"}, true},
		{"a folder", []string{"other", bin}, false}, {"nothing", nil, false}, {"an empty word", []string{""}, false},
		{"a home in a word", []string{"env", "${HOME}/links/hard"}, true},
		{"a launcher with an ending", []string{"env.exe", "codex"}, true},
		{"another home", []string{"sh", "-c", "~/links/hard"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"PATH": links + string(filepath.ListSeparator) + bin, "HOME": dir}
			must.Equal(t, "it is started", tt.want, p.StartedBy(tt.argv, work, env))
		})
	}

	t.Setenv("HOME", dir)
	if !p.StartedBy([]string{"sh", "-c", "~/links/hard"}, work, nil) {
		t.Error("not found in the home directory of the server")
	}

	byLink := self.New(filepath.Join(links, "codex"))
	// An update puts another file in its place.
	boxtest.Lay(t, bin, "codex-mcp.new=\x7fELF 2")
	must.OK(t, os.Rename(program+".new", program))
	for _, p := range []*self.Program{p, byLink} {
		if !p.StartedBy([]string{program}, "", nil) {
			t.Error("not found after an update")
		}
	}
	for _, none := range []*self.Program{self.New(""), self.New(filepath.Join(dir, "nosuch")), nil} {
		if none.StartedBy([]string{program}, "", nil) {
			t.Error("no program is found")
		}
	}
}
