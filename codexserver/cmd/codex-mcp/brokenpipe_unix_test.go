//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestEndToEndStandardErrorClosed closes the reading end of the server's
// standard error before the server has written to it.
func TestEndToEndStandardErrorClosed(t *testing.T) {
	t.Parallel()
	s := sit(t, providertest.Turn{Text: []string{"Done."}})
	cmd := s.command(t, "--engine", "native", "--log", "debug")
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"go"}}}` + "\n")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Stderr = unread(t)
	if err := cmd.Run(); err != nil || !strings.Contains(stdout.String(), `"text":"Done."`) {
		t.Errorf("%v: %s", err, &stdout)
	}
}

// TestEndToEndAskWithoutItsOutput checks that the turn of codex-mcp ask ends when the reader
// of its standard output is gone.
func TestEndToEndAskWithoutItsOutput(t *testing.T) {
	t.Parallel()
	t.Run("json", func(t *testing.T) {
		t.Parallel()
		s := sit(t, providertest.Turn{Wait: make(chan struct{})})
		cmd := s.command(t, "ask", "--engine", "native", "--json", "wait for ever")
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = unread(t), &stderr
		cmd.Run()
		failedToWrite(t, cmd, stderr.String(), "broken pipe")
	})
	for _, args := range [][]string{{"--json"}, nil} {
		t.Run(fmt.Sprintf("reader gone in silence %v", args), func(t *testing.T) {
			t.Parallel()
			s := sit(t, providertest.Turn{Wait: make(chan struct{})})
			cmd := s.command(t, append([]string{"ask", "--engine", "native", "wait for ever"}, args...)...)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = w, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			awaitRequests(t, s.model, 1) // what comes before the answer is in the pipe
			r.Close()
			cmd.Wait()
			failedToWrite(t, cmd, stderr.String(), "broken pipe")
		})
	}
	t.Run("both streams in one pipe", func(t *testing.T) {
		t.Parallel()
		s := sit(t, providertest.Turn{Wait: make(chan struct{})})
		cmd := s.command(t, "ask", "--engine", "native", "wait for ever")
		w := unread(t)
		cmd.Stdout, cmd.Stderr = w, w
		cmd.Run()
		failedToWrite(t, cmd, "", "")
	})
	t.Run("progress alone", func(t *testing.T) {
		t.Parallel()
		s := sit(t, providertest.Turn{Text: []string{"Done."}})
		cmd := s.command(t, "ask", "--engine", "native", "go")
		var stdout bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, unread(t)
		if err := cmd.Run(); err != nil || stdout.String() != "Done.\n" {
			t.Errorf("%v: %q", err, &stdout)
		}
	})
}

// TestEndToEndFullDevice writes to a full device.
func TestEndToEndFullDevice(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	for _, args := range [][]string{
		{"--version"}, {"--help"}, {"completion", "bash"}, {"ask", "--engine", "native", "go"}, {"ask", "--engine", "native", "--json", "go"},
		{"doctor", "--engine", "native"}, {"doctor", "--engine", "native", "--json"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer full.Close()
			s := sit(t, providertest.Turn{Text: []string{"Done."}})
			cmd := s.command(t, args...)
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = full, &stderr
			cmd.Run()
			failedToWrite(t, cmd, stderr.String(), "no space left on device")
		})
	}
}

// unread returns the writing end of a pipe whose reading end is closed.
func unread(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	t.Cleanup(func() { w.Close() })
	return w
}

func failedToWrite(t *testing.T, cmd *exec.Cmd, stderr, why string) {
	t.Helper()
	if got := cmd.ProcessState.ExitCode(); got != terminal.StatusFailed || !strings.Contains(stderr, why) {
		t.Errorf("%v: %s", cmd.ProcessState, stderr)
	}
}
