//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestEndToEndNothingOutlivesTheServer ends the server in the middle of a turn whose command has children of its own. Each of
// them holds the writing end of a pipe, so the pipe's end is the end of the last of them.
func TestEndToEndNothingOutlivesTheServer(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*process){
		"EOF":     func(p *process) { p.stdin.Close() },
		"SIGTERM": func(p *process) { p.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGHUP":  func(p *process) { p.cmd.Process.Signal(syscall.SIGHUP) },
		"SIGINT":  func(p *process) { p.cmd.Process.Signal(os.Interrupt) },
		"no reader": func(p *process) {
			p.stdout.Close()
			p.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, alive := midCommand(t)
			end(p)
			code := p.wait()
			until(t, "processes of the command are still there", func() bool {
				n, err := alive.Read(make([]byte, 1))
				if n > 0 {
					t.Error("the command wrote more")
				}
				return err == io.EOF
			})
			if name == "no reader" {
				return
			}
			if code != 0 {
				t.Errorf("exit status %d", code)
			}
			// The server waits a second for the result, which a busy machine may need longer for.
			answer := p.find(func(m map[string]any) bool { return contains(m, map[string]any{"id": 1.0, "method": nil}) })
			if got, _ := result(answer); answer != nil && got["isError"] != true {
				t.Errorf("the result is %v", answer)
			}
		})
	}
}

// TestEndToEndNohup closes the terminal of a server that was started with nohup.
func TestEndToEndNohup(t *testing.T) {
	t.Parallel()
	bin := built(t)
	wait := make(chan struct{})
	s := sit(t, providertest.Turn{Wait: wait, Text: []string{"Still here."}})
	p := launch(t, s.f, exec.Command("sh", "-c", `trap "" HUP; exec "$0" --engine native`, bin))
	p.hello(`{}`)
	p.call("codex", map[string]any{"prompt": "wait"})
	awaitRequests(t, s.model, 1)
	must.OK(t, p.cmd.Process.Signal(syscall.SIGHUP))
	p.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	p.expect(map[string]any{"id": 2.0, "result": map[string]any{}})
	close(wait)
	p.expect(map[string]any{"id": 1.0, "result": map[string]any{"isError": nil}})
	p.stdin.Close()
	must.Equal(t, "exit status", 0, p.wait())
}

// midCommand starts a server and returns when one of its commands is running, with the reading end of
// the pipe that the command's processes hold.
func midCommand(t *testing.T) (*process, *os.File) {
	t.Helper()
	f, _ := prepare(t, "never", providertest.Call(providertest.Shell("c", "sh", "-c",
		"exec 9>alive; echo up >&9; (sleep 600 & sleep 600) & sleep 600")))
	path := filepath.Join(f.cwd, "alive")
	must.OK(t, syscall.Mkfifo(path, 0o600))
	alive, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // does not wait for the first writer
	must.OK(t, err)
	t.Cleanup(func() { alive.Close() })
	_ = alive.SetReadDeadline(time.Now().Add(2 * limit)) // where the system can
	p := start(t, f, "--engine", "native")
	p.hello(`{}`)
	p.call("codex", map[string]any{"prompt": "wait"})
	until(t, "the command did not start", func() bool {
		n, _ := alive.Read(make([]byte, len("up\n")))
		return n > 0
	})
	return p, alive
}
