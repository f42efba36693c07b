package main

import (
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

var keptMoments = flag.Int("kept-moments", nightly.Number(2, 51), "for each choice, end the server at this `number` of moments, 10 ms apart")

// narrowing is a choice of a call that is stricter than the configuration, and a command that it does not allow. OTHER is
// a folder that the configuration makes writable, PORT is a port of this machine.
type narrowing struct {
	choice  map[string]any
	command string
	patch   bool // it does not allow a patch either
}

var narrowings = map[string]narrowing{
	"approval policy": {map[string]any{"approval-policy": "untrusted"}, "echo x >> log.txt", true},
	"sandbox":         {map[string]any{"sandbox": "read-only"}, "echo x >> log.txt", true},
	"writable roots":  {workspaceTable("writable_roots", []string{}), "echo x >> OTHER/log.txt", false},
	"network":         {workspaceTable("network_access", false), "exec 3<>/dev/tcp/127.0.0.1/PORT", false},
}

// workspaceTable returns an argument config with a member of the table sandbox_workspace_write.
func workspaceTable(key string, v any) map[string]any {
	return map[string]any{"config": map[string]any{"sandbox_workspace_write": map[string]any{key: v}}}
}

// TestEndToEndKept ends servers soon after the begin of a conversation whose call chose less than the configuration gives.
// Another server goes on with it while the client declines everything: the choice still holds.
func TestEndToEndKept(t *testing.T) {
	t.Parallel()
	boxtest.Need(t)
	playKept(t, false)
}

// playKept plays each choice with servers that end at each moment.
func playKept(t *testing.T, bridge bool) {
	for name, n := range narrowings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			early := 0
			for i := range *keptMoments {
				for _, signal := range []os.Signal{syscall.SIGTERM, os.Kill} {
					after := time.Duration(i) * 10 * time.Millisecond
					t.Run(fmt.Sprintf("%v after %v", signal, after), func(t *testing.T) {
						if n.play(newVictim(t, bridge), after, signal) {
							early++
						}
					})
				}
			}
			t.Logf("%d of %d servers ended when the file of their conversation had no policies", early, 2**keptMoments)
		})
	}
}

// play reports whether the engine's file of the conversation had no policies when the server ended.
func (n narrowing) play(v *victim, after time.Duration, signal os.Signal) (early bool) {
	t := v.t
	other := filepath.Join(filepath.Dir(v.cwd), "other")
	must.OK(t, os.Mkdir(other, 0o755))
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	var reached atomic.Bool
	go func() {
		if c, err := l.Accept(); err == nil {
			reached.Store(true)
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	command := strings.NewReplacer("OTHER", other, "PORT", port).Replace(n.command)
	v.model.Add(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		switch outputs := r.ToolOutputs(); {
		case !strings.Contains(string(r.Body), "go on"):
			return providertest.Turn{Wait: t.Context().Done()}
		case len(outputs) == 0:
			return v.command("c1", "bash -c '"+command+"'")
		case len(outputs) == 1:
			return v.command("c2", "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: made.txt\n+x\n*** End Patch\nEOF\n")
		}
		return providertest.Say("done")
	}})
	config := fmt.Sprintf(onRequest+"\n[sandbox_workspace_write]\nnetwork_access = true\nwritable_roots = [%q]\n", other)
	v.serve(config, "")
	arguments := map[string]any{"prompt": "begin"}
	maps.Copy(arguments, n.choice)
	v.process.call("codex", arguments)
	event := v.expect(map[string]any{"method": "codex/event", "params": map[string]any{"msg": map[string]any{"type": "session_configured"}}})
	thread, _ := event["params"].(map[string]any)["msg"].(map[string]any)["session_id"].(string)
	<-time.After(after)
	must.OK(t, v.cmd.Process.Signal(signal))
	v.wait()
	files, _ := filepath.Glob(filepath.Join(v.home, "sessions", "*", "*", "*", "*"+thread+"*"))
	for _, file := range files {
		early = !strings.Contains(string(must.Get(os.ReadFile(file))(t)), `"turn_context"`)
	}

	v.serve(config, "")
	v.call("codex-reply", map[string]any{"prompt": "go on", "threadId": thread}) // without a file of the engine there is no such conversation
	exists := func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	}
	if exists(filepath.Join(v.cwd, "log.txt")) || exists(filepath.Join(other, "log.txt")) || reached.Load() {
		t.Errorf("the command ran after questions %q", v.asked)
	}
	if n.patch && exists(filepath.Join(v.cwd, "made.txt")) {
		t.Errorf("the patch was made after questions %q", v.asked)
	}
	return early
}
