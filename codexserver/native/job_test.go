//go:build unix

package native_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestJobEndsWithItsTurn leaves a command in the background. The turn ends, or is interrupted
// while the model answers; the client learns of the command's end before that of the turn.
func TestJobEndsWithItsTurn(t *testing.T) {
	t.Parallel() // a job is awaited for two seconds
	for _, interrupted := range []bool{false, true} {
		t.Run(map[bool]string{false: "done", true: "interrupted"}[interrupted], func(t *testing.T) {
			t.Parallel()
			b := setup(t, "", native.Limits{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b.provider.Add(
				providertest.Call(providertest.Tool("c1", "shell", map[string]any{"command": "echo $$ > pid; echo up; exec sleep 900", "background": true})),
				providertest.Call(providertest.Tool("c2", "job", map[string]any{"id": "job1", "wait_ms": 0})),
				providertest.Turn{Func: func(providertest.Request) providertest.Turn {
					if interrupted {
						cancel()
						return providertest.Turn{Text: []string{"b"}, Stall: make(chan struct{})}
					}
					return providertest.Say("bye")
				}})
			h := &host{exec: approve}
			c := b.start(t, h, protocol.Config{Sandbox: protocol.SandboxDangerFullAccess, ApprovalPolicy: protocol.ApprovalNever})
			if err := c.Turn(ctx, say("serve")); (err != nil) != interrupted {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(b.cwd, "pid"))
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("the command is left: %v", err)
			}
			got := b.provider.Requests()[2].ToolOutputs()
			if len(got) != 2 || !strings.Contains(got[0].Output, "job1 still runs") || !strings.Contains(got[0].Output, "up") || !strings.Contains(got[1].Output, "no new output") {
				t.Errorf("outputs %q", got)
			}
			events := strings.Join(h.take(), ", ")
			begin, end, last := strings.Index(events, "exec_command_begin"), strings.Index(events, "exec_command_end"), max(strings.Index(events, "task_complete"), strings.Index(events, "turn_aborted"))
			if begin < 0 || end < begin || last < end {
				t.Errorf("events %s", events)
			}
		})
	}
}
