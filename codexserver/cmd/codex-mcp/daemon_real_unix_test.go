//go:build realcodex && (linux || darwin)

package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// answers is a host that keeps the last answer.
type answers struct {
	engine.DenyAll
	last string
}

func (a *answers) Emit(m protocol.EventMsg) {
	if m, ok := m.(protocol.AgentMessage); ok {
		a.last = m.Message
	}
}

func (a *answers) EmitAs(_ string, m protocol.EventMsg) { a.Emit(m) }

// TestRealDaemon attaches to Codex's own daemon. When that is restarted, as its update does, or
// killed in the middle of a turn, the conversation continues.
func TestRealDaemon(t *testing.T) {
	codex, err := appserver.Find("")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CODEX_BIN", "") // by which users name a program that is not the daemon's
	t.Setenv("PATH", filepath.Dir(codex)+string(os.PathListSeparator)+os.Getenv("PATH"))
	home, cwd := t.TempDir(), t.TempDir()
	t.Setenv("CODEX_HOME", home)
	t.Setenv("HOME", t.TempDir())
	stall := make(chan struct{})
	ends := make(chan struct{})
	s := providertest.New(providertest.Say("one"), providertest.Turn{Text: []string{"thinking"}, Stall: stall},
		providertest.Say("two"), providertest.Turn{Text: []string{"thinking"}, Stall: ends}, providertest.Say("three"))
	t.Cleanup(func() { close(ends); s.Close() })
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(servertest.CodexConfig(s.BaseURL(), "")), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := func(what string) {
		t.Helper()
		if out, err := exec.Command(codex, "app-server", "daemon", what).CombinedOutput(); err != nil {
			t.Errorf("daemon %s: %v: %s", what, err, out)
		}
	}
	daemon("start")
	t.Cleanup(func() { // the updater outlives the daemon
		endRecorded(t, home, "daemon.pid")
		endRecorded(t, home, "daemon-updater.pid")
	})
	c := &configuration{home: home, log: slog.New(slog.DiscardHandler)}
	e, err := c.bridge("")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if r := e.Check(t.Context()); !r.Usable() || !r.Shared {
		t.Fatalf("report %+v", r)
	}
	h := &answers{}
	conv, err := e.Start(t.Context(), protocol.Config{Cwd: cwd}, h)
	if err != nil {
		t.Fatal(err)
	}
	go_ := protocol.TurnInput{Items: protocol.TextInput("go")}
	turn := func(want string, shared bool) {
		t.Helper()
		if err := conv.Turn(t.Context(), go_); err != nil || h.last != want {
			t.Errorf("%v, answered %q, want %q", err, h.last, want)
		}
		if got := e.Check(t.Context()).Shared; got != shared {
			t.Errorf("on the daemon: %t, want %t", got, shared)
		}
	}
	turn("one", true)
	// A restart, which an update ends with, waits for the end of the turns.
	done, restarted := make(chan error, 1), make(chan struct{})
	go func() { done <- conv.Turn(t.Context(), go_) }()
	if err := s.Await(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(restarted); daemon("restart") }()
	close(stall)
	if err := <-done; err != nil || h.last != "thinking" {
		t.Errorf("while the daemon was to restart: %v, %q", err, h.last)
	}
	<-restarted
	turn("two", true)
	// Its end in the middle of a turn ends the turn.
	go func() { done <- conv.Turn(t.Context(), go_) }()
	if err := s.Await(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	endRecorded(t, home, "daemon.pid")
	var failed *engine.TurnError
	if err := <-done; !errors.As(err, &failed) || !strings.Contains(failed.Message, "the conversation can continue") {
		t.Errorf("killed: %v", err)
	}
	turn("three", false)
}

// endRecorded ends the process that a file of the daemon names.
func endRecorded(t *testing.T, home, file string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(home, "app-server-daemon", file))
	var recorded struct {
		PID int `json:"pid"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &recorded)
	}
	if err != nil || recorded.PID <= 1 {
		t.Errorf("%s: %v", file, err)
		return
	}
	if err := syscall.Kill(recorded.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
}
