package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestTurnWritesItsRecords checks what turns without a command write: the conversation's file, its
// lock, and no more bytes than these, the answers and the requests need.
func TestTurnWritesItsRecords(t *testing.T) {
	const turns, most = 20, 64 << 10 // bytes of a turn
	f := newFolders(t)
	model := providertest.New()
	t.Cleanup(model.Close)
	var answers []providertest.Turn
	for range turns + 1 {
		answers = append(answers, providertest.Say("done"))
	}
	model.Reset(answers...)
	writeConfig(t, f.home, fmt.Sprintf(configOf, model.BaseURL()))
	p := start(t, f, "-engine", "native")
	p.hello(`{}`)
	seen := map[int]bool{}
	call := func(id int) {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"hi","approval-policy":"never","sandbox":"read-only"}}}`, id))
		p.expect(map[string]any{"id": float64(id)}, seen)
	}
	call(1) // takes the reserve
	before, begin := written(t, p.cmd.Process.Pid), time.Now()
	for i := range turns {
		call(i + 2)
	}
	if each := (written(t, p.cmd.Process.Pid) - before) / turns; each > most {
		t.Errorf("a turn writes %d bytes", each)
	}
	for _, dir := range []string{f.home, f.cwd, f.user} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil || e.IsDir() || info.ModTime().Before(begin) {
				return err
			}
			name := strings.TrimPrefix(path, dir+"/")
			if dir != f.home || !strings.HasPrefix(name, "sessions/") && !strings.HasPrefix(name, "codex-mcp/") {
				t.Errorf("a turn wrote %s", path)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(f.home, "tmp")); err == nil {
		for _, e := range left {
			if strings.HasPrefix(e.Name(), "git-") {
				t.Errorf("turns that changed nothing have a git folder: %s", e.Name())
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
	if _, err := fmt.Sscanf(string(all[strings.Index(string(all), "wchar:"):]), "wchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}
