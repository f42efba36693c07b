package main

import (
	"flag"
	"fmt"
	"os/exec"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/nightly"
)

var moments = flag.Int("moments", nightly.Number(1, 50), "end the server or its command at this `number` of moments, in each way; the step soak has more")

// TestEndToEndNothingOutlivesADeadServer ends the server while it starts, and
// while it runs a command. The bridge has the same test in its package.
func TestEndToEndNothingOutlivesADeadServer(t *testing.T) {
	t.Parallel()
	bin := built(t)
	model := providertest.New(providertest.Turn{Repeat: true, ToolCalls: []providertest.ToolCall{providertest.Tool("c", "shell",
		map[string]any{"command": []string{"bash", "-c", servertest.Daemons}, "timeout_ms": 600_000})}})
	t.Cleanup(model.Close)
	servertest.AtAnyMoment(t, *moments, func(t *testing.T) *exec.Cmd {
		home := t.TempDir()
		writeConfig(t, home, fmt.Sprintf(configOf, model.BaseURL()))
		cmd := exec.Command(bin, "--engine", "native")
		cmd.Env = []string{"CODEX_HOME=" + home}
		return cmd
	})
}

// TestEndToEndReaderLeaves closes the reading ends of the program's output. The bridge has the same test in its package.
func TestEndToEndReaderLeaves(t *testing.T) {
	t.Parallel()
	bin := built(t)
	run := func(script string) providertest.Turn {
		call := providertest.Tool("c", "shell", map[string]any{"command": []string{"bash", "-c", script}, "timeout_ms": 600_000})
		return providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
			if len(r.ToolOutputs()) > 0 {
				return providertest.Say("Done.")
			}
			return providertest.Call(call)
		}}
	}
	models := map[bool]*providertest.Server{true: providertest.New(run(servertest.Daemons)), false: providertest.New(run("sleep 0.1"))}
	t.Cleanup(models[true].Close)
	t.Cleanup(models[false].Close)
	servertest.ReaderLeaves(t, *moments, func(t *testing.T, busy bool, args ...string) *exec.Cmd {
		home := t.TempDir()
		writeConfig(t, home, fmt.Sprintf(configOf, models[busy].BaseURL()))
		cmd := exec.Command(bin, append(args, "--engine", "native")...)
		cmd.Env = []string{"CODEX_HOME=" + home}
		return cmd
	})
}
