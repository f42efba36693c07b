package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

var moments = flag.Int("moments", 3, "end the server or its command at this `number` of moments, in each way; the step soak has more")

// daemons starts three processes that hold a named pipe: one in the background, and two that
// forked twice, lead or left a session, and closed everything they inherited except the
// pipe. Each reports that it is running, and makes a file.
const daemons = `
exec 9>alive
daemon='exec 99>&- 2>&- >&- <&-; (touch $0; echo up >&9; exec sleep 600) &'
bash -c "$daemon" a &
(setsid bash -c "$daemon" b &)
(setsid bash -c "setsid setsid bash -c '$daemon' c &" &)
until [ -e a ] && [ -e b ] && [ -e c ]; do sleep 0.01; done
`

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
		cmd := exec.Command(bin, "-engine", "native")
		cmd.Env = []string{"CODEX_HOME=" + home}
		return cmd
	})
}

// TestEndToEndReaderLeaves closes the reading ends of the program's output. The bridge has the
// same test in its package.
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
		cmd := exec.Command(bin, append(args, "-engine", "native")...)
		cmd.Env = []string{"CODEX_HOME=" + home}
		return cmd
	})
}

// TestEndToEndNothingOutlivesItsCommand ends a confined command in each way: its processes are
// gone before its call is answered.
func TestEndToEndNothingOutlivesItsCommand(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		script  string
		timeout int // in milliseconds
		end     func(p *process)
	}{
		"exit":    {"exit 0", 600_000, func(*process) {}},
		"killed":  {"kill -KILL $$", 600_000, func(*process) {}},
		"timeout": {"sleep 600", 3_000, func(*process) {}},
		"interrupt": {"sleep 600", 600_000, func(p *process) {
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		}},
	} {
		times := *moments
		if name == "timeout" { // each takes its time
			times = max(1, times/5)
		}
		for range times {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p, children := runScript(t, "workspace-write", daemons+end.script, end.timeout)
				end.end(p)
				children.gone(t)
				if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				p.wait()
			})
		}
	}
}

// runScript starts a server whose model runs a script, and returns when the
// script's daemons are up.
func runScript(t *testing.T, mode, script string, timeout int) (*process, *holders) {
	t.Helper()
	f := newFolders(t)
	children := hold(t, filepath.Join(f.cwd, "alive"))
	t.Cleanup(func() { killIn(f.cwd) }) // when the test failed
	model := providertest.New(
		providertest.Call(providertest.Tool("c", "shell", map[string]any{"command": []string{"bash", "-c", script}, "timeout_ms": timeout})),
		providertest.Turn{Wait: make(chan struct{})}, // the conversation lives on
	)
	t.Cleanup(model.Close)
	config := "approval_policy = \"never\"\n" + fmt.Sprintf(configOf, model.BaseURL())
	writeConfig(t, f.home, config)
	p := start(t, f, "-engine", "native", "-c", "sandbox_mode="+mode)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"wait"}}}`)
	for range 3 {
		children.up(t)
	}
	return p, children
}

// killIn kills the processes whose working folder is dir.
func killIn(dir string) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || to != dir {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
