package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/history"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// patchFiles is how many files the patch of a test adds. Each is named to the model and to a
// person.
const patchFiles = 40

// TestEndToEndKilledInPatch kills servers while they apply an approved patch of many files: each
// after another file has appeared. The next server does not apply the patch again, and says so to the
// model and to a person.
func TestEndToEndKilledInPatch(t *testing.T) {
	t.Parallel()
	f := newFolders(t)
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		name := string(worked.FindSubmatch(r.Body)[1])
		if len(r.ToolOutputs()) > 0 {
			return providertest.Say("done " + name)
		}
		var patch strings.Builder
		patch.WriteString("*** Begin Patch\n")
		for n := range patchFiles {
			fmt.Fprintf(&patch, "*** Add File: %s\n%s", patched(name, n), strings.Repeat("+line\n", 1000))
		}
		return providertest.Call(providertest.Shell(name+"-1", "apply_patch", patch.String()+"*** End Patch\n"))
	}})
	t.Cleanup(model.Close)
	writeConfig(t, f.home, "approval_policy = \"untrusted\"\n"+fmt.Sprintf(configOf, model.BaseURL()))
	record := filepath.Join(f.home, "record")
	if err := os.WriteFile(filepath.Join(f.home, "codex-mcp.toml"), fmt.Appendf(nil, "[approvals]\nlog = %q\n", record), 0o600); err != nil {
		t.Fatal(err)
	}
	k := &killer{t: t, f: f, mark: "KILL_TEST=" + rand.Text()}
	t.Cleanup(func() { k.sweep() })
	h := &history.History{}
	runs, half := max(*kills/4, 3), 0
	for n := range runs {
		name := fmt.Sprintf("n%d", n)
		s := k.start()
		v, ok := s.call("tools/call", fmt.Sprintf(`"name":"codex","arguments":{"prompt":"task-%s"},%s`, name, pollingClient))
		if !ok || v.TaskID == "" {
			t.Fatalf("%+v", v)
		}
		id := v.TaskID
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			last := filepath.Join(f.cwd, patched(name, n*patchFiles/runs))
			for begin := time.Now(); time.Since(begin) < limit; {
				if _, err := os.Lstat(last); err == nil {
					break
				}
			}
			_ = s.cmd.Process.Kill()
		}()
		for {
			if _, ok := s.poll(id); !ok {
				break
			}
		}
		<-killed
		s.kill()
		before := patchState(t, f, name)
		s = k.start()
		told := s.ended(id)
		s.end()
		after := patchState(t, f, name)
		if before != after {
			t.Errorf("the next server changed the files:\n%s\n%s", before, after)
		}
		switch there := strings.Count(after, "\n"); {
		case there > 0 && there < patchFiles || strings.Contains(after, " 0\n"):
			half++
			if !strings.Contains(told, "was not run again") {
				t.Errorf("%d files are there, and a person was told %s", there, told)
			}
		case !strings.Contains(told, "done "+name):
			t.Errorf("%d files are there, and a person was told %s", there, told)
		}
		thread, _, _ := strings.Cut(id, ".")
		h.Tasks = append(h.Tasks, history.Task{Name: name, Thread: thread, Ended: true, Told: told})
		paths, err := filepath.Glob(filepath.Join(f.home, "sessions", "*", "*", "*", "rollout-*"+thread+".jsonl"))
		if err == nil && len(paths) == 1 {
			err = h.ReadRollout(paths[0])
		}
		if err != nil || len(paths) != 1 {
			t.Fatal(paths, err)
		}
	}
	if err := h.ReadRecord(record); err != nil {
		t.Fatal(err)
	}
	h.Left = k.left()
	for _, fault := range h.Check() {
		t.Error(fault)
	}
	t.Logf("%d of %d patches were half applied", half, runs)
	if half == 0 && runs > 10 { // few may all be too late on a loaded machine
		t.Error("no patch was half applied")
	}
}

func patched(name string, n int) string { return fmt.Sprintf("%s.%02d", name, n) }

// patchState returns a line for each file of a patch that is there: its name, when it was
// written, and its size.
func patchState(t *testing.T, f folders, name string) string {
	var all strings.Builder
	for n := range patchFiles {
		info, err := os.Lstat(filepath.Join(f.cwd, patched(name, n)))
		switch {
		case err == nil:
			fmt.Fprintln(&all, info.Name(), info.ModTime().UnixNano(), info.Size())
		case !errors.Is(err, fs.ErrNotExist):
			t.Error(err)
		}
	}
	return all.String()
}
