package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestTurnWritesItsRecords checks what turns with and without a command leave in a repository with
// changed, new and ignored files, in the home and among the temporary files: the conversation's file and what the command
// made. They write no more bytes than these, the answers and the requests need.
func TestTurnWritesItsRecords(t *testing.T) {
	t.Parallel()
	const turns, most = 5, 64 << 10 // bytes of a turn
	f, model := prepare(t, "on-request")
	top := filepath.Dir(f.home)
	script := "git init -q; echo x > a; echo '*.o' > .gitignore; git add .; git -c user.name=a -c user.email=a@b commit -qm a; echo y > a; echo z > new; mkdir out; touch out/x x.o; mkdir ../temporary"
	lay := exec.CommandContext(t.Context(), "sh", "-ec", script)
	lay.Dir = f.cwd
	if out, err := lay.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p := launch(t, f, exec.Command("env", "TMPDIR="+filepath.Join(top, "temporary"), built(t), "--engine", "native"))
	p.hello(`{}`)
	call := func(command ...string) {
		answers := []providertest.Turn{providertest.Say("done")}
		if command != nil {
			answers = []providertest.Turn{providertest.Call(providertest.Shell("c", command...)), answers[0]}
		}
		model.Reset(answers...)
		p.call("codex", map[string]any{"prompt": "hi", "approval-policy": "never", "sandbox": "danger-full-access"})
		p.answer()
	}
	left := func() (all map[string]fs.FileInfo) {
		all = map[string]fs.FileInfo{}
		_ = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if info, err := os.Lstat(path); err == nil && !info.IsDir() {
				all[strings.TrimPrefix(path, top+"/")] = info
			}
			return nil
		})
		return all
	}
	call("cat", "a")                                                      // takes the reserve
	record := regexp.MustCompile(`^home/(sessions/|codex-mcp/|tmp/log-)`) // as docs/engines.md says
	for _, tt := range []struct {
		command []string
		turns   int
		more    string // besides the records
	}{{nil, turns, ""}, {[]string{"cat", "a"}, 3, ""}, {[]string{"sh", "-c", "echo 1 > made"}, 1, "work/made"}} {
		before, files := written(t, p.cmd.Process.Pid), left()
		for range tt.turns {
			call(tt.command...)
		}
		if each := (written(t, p.cmd.Process.Pid) - before) / tt.turns; each > most {
			t.Errorf("a turn with %q writes %d bytes", tt.command, each)
		}
		for name, info := range left() {
			if was := files[name]; (was == nil || was.Size() != info.Size() || !was.ModTime().Equal(info.ModTime())) && !record.MatchString(name) && name != tt.more {
				t.Errorf("a turn with %q wrote %s", tt.command, name)
			}
		}
	}
}

// written returns how many bytes a process has written to files, pipes and connections.
func written(t *testing.T, pid int) (n int) {
	t.Helper()
	all, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		t.Skip("the system does not count what a process writes:", err)
	}
	must.Get(fmt.Sscanf(string(all[strings.Index(string(all), "wchar:"):]), "wchar: %d", &n))(t)
	return n
}
