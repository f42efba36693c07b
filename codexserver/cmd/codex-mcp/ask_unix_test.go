//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestEndToEndAskBlockedOutput checks that codex-mcp ask ends although its output is blocked. It waits for longer than any
// other test, and is in a file of its own so that it begins early.
func TestEndToEndAskBlockedOutput(t *testing.T) {
	t.Parallel()
	s := sit(t, providertest.Turn{Wait: make(chan struct{})})
	r, w, err := os.Pipe()
	must.OK(t, err)
	defer r.Close()
	defer w.Close()
	w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := w.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the pipe is not full: %v", err)
	}
	cmd := s.command(t, "ask", "--engine", "native", "--json", "wait for ever")
	cmd.Stdout = w
	must.OK(t, cmd.Start())
	awaitRequests(t, s.model, 1)
	cmd.Process.Signal(syscall.SIGTERM)
	if cmd.Wait(); cmd.ProcessState.ExitCode() != terminal.StatusInterrupted {
		t.Errorf("%v", cmd.ProcessState)
	}
}
