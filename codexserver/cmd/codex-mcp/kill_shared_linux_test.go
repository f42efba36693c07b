package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestSharedBackgroundKilled kills the shared server and the relay at moments of a turn in the
// background. The next client learns what ran, and nothing is left of the killed server: no process, no
// private git folder. The step soak kills more often.
func TestSharedBackgroundKilled(t *testing.T) {
	t.Parallel()
	f := newFolders(t)
	servertest.Git(t, f.cwd, "init", "-q")
	servertest.Git(t, f.cwd, "commit", "-q", "--allow-empty", "-m", "begin")
	model := providertest.New(workModel(f))
	t.Cleanup(model.Close)
	writeConfig(t, f.home, "approval_policy = \"never\"\n"+fmt.Sprintf(configOf, model.BaseURL()))
	if err := os.WriteFile(filepath.Join(f.cwd, "ran"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSharing(t, f)
	k := &killer{t: t, f: f, mark: "KILL_TEST=" + rand.Text()}
	t.Cleanup(func() { k.sweep() })
	k.launches = func() *mortal {
		cmd := s.command(context.Background(), built(t), "--shared", "-engine", "native", "-c", "calls.grace=0s")
		cmd.Env = append(cmd.Env, k.mark)
		return k.launch(cmd)
	}
	kinds := map[string]int{}
	for n := range *kills {
		name := fmt.Sprintf("n%d", n)
		relay := k.start()
		_, structured := relay.tool("codex", fmt.Sprintf(`{"prompt":"task-%s","background":true}`, name))
		id, _ := structured["threadId"].(string)
		if id == "" {
			t.Fatalf("no thread: %v", structured)
		}
		pids := s.servers()
		<-time.After(mathrand.N(300 * time.Millisecond))
		if len(pids) != 1 {
			t.Fatalf("servers %v", pids)
		}
		if n%2 == 0 {
			_ = syscall.Kill(pids[0], syscall.SIGSTOP)
		}
		for _, pid := range append(pids, relay.cmd.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		relay.wait()
		relay = k.start()
		for {
			_, structured := relay.tool("codex-wait", fmt.Sprintf(`{"threadIds":[%q],"seconds":5}`, id)) // less than limit, which bounds the call
			rows, _ := structured["threads"].([]any)
			if len(rows) != 1 {
				t.Fatalf("%v", structured)
			}
			row := rows[0].(map[string]any)
			status := fmt.Sprint(row["status"])
			if status == "running" || status == "waiting" {
				continue
			}
			kinds[status]++
			content := fmt.Sprint(row["content"])
			if status == "unknown" { // it had ended before the kill
				files, _ := filepath.Glob(filepath.Join(f.home, "sessions", "*", "*", "*", "rollout-*"+id+".jsonl"))
				if len(files) == 1 {
					content += k.read(files[0])
				}
			}
			if !strings.Contains(content, "done "+name) && !k.never(name, content) {
				t.Errorf("%s is %s: %s", name, status, content)
			}
			break
		}
		relay.end()
	}
	t.Log(kinds)
	if out, err := s.command(t.Context(), built(t), "shared", "stop").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if left := k.left(); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	if left, _ := filepath.Glob(filepath.Join(f.home, "tmp", "git-*")); len(left) > 0 {
		t.Errorf("folders are left: %q", left)
	}
}

// tool calls a tool as a client of this era.
func (s *mortal) tool(name, arguments string) (text string, structured map[string]any) {
	s.t.Helper()
	var result struct {
		Structured map[string]any `json:"structuredContent"`
		Content    []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := s.peer.Call(ctx, "tools/call", json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":%s,%s}`, name, arguments, waitingClient)), &result); err != nil {
		s.t.Fatal(err)
	}
	for _, c := range result.Content {
		text += c.Text
	}
	return text, result.Structured
}
