//go:build realcodex && unix

package appserver_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// keepIn gives Codex a home whose store is a folder. An empty home gets the conversations from it.
func (r *real) keepIn(t *testing.T, disk string, epoch uint64) {
	t.Helper()
	d, err := workertest.OpenDir(disk, epoch)
	if err != nil {
		t.Fatal(err)
	}
	m, err := worker.Open(t.Context(), r.home, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Close()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	r.options.CodexHome, r.options.Store = r.home, m
	r.restart(t)
}

// TestRealContinueElsewhere loses the home while the second turn of a conversation runs. The real
// Codex on another machine continues the conversation, and does not say that nothing of that
// turn ran.
func TestRealContinueElsewhere(t *testing.T) {
	disk := t.TempDir()
	run := providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": "echo ran >> ran.txt; sleep 600"}))
	r := newReal(t, "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"", providertest.Say("one"), run, providertest.Say("three"))
	r.keepIn(t, disk, 1)
	h := &recorder{}
	conv := r.start(t, h, protocol.Config{})
	in := func(key string) protocol.TurnInput {
		return protocol.TurnInput{Items: protocol.TextInput("go"), Key: key}
	}
	if err := conv.Turn(t.Context(), in("key-1")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	end := begin(ctx, conv, in("key-2"))
	for ran(r) == 0 {
		<-time.After(time.Millisecond)
	}
	// The machine sends nothing more.
	next, err := workertest.OpenDir(disk, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	kill(t, r.engine.PID())
	<-end
	text, err := os.ReadFile(filepath.Join(r.home, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	r.home = t.TempDir()
	writeFile(t, filepath.Join(r.home, "config.toml"), string(text))
	r.keepIn(t, disk, 3)
	path, err := fileOf(t, r.engine, conv.ID())
	if err != nil || !strings.HasPrefix(path, r.home) {
		t.Fatalf("%s, %v", path, err)
	}
	after := &recorder{}
	again, err := r.engine.Resume(t.Context(), savedAt(path), protocol.Config{Continues: true}, after)
	if err != nil {
		t.Fatal(err)
	}
	err = again.Turn(t.Context(), protocol.TurnInput{Key: "key-2", Continue: func(string) {}})
	if err == nil || !strings.Contains(err.Error(), "what the turn has done is not known") {
		t.Errorf("lost: %v", err)
	}
	if err := again.Turn(t.Context(), in("key-3")); err != nil || after.answer() != "three" {
		t.Errorf("%v, %q", err, after.answer())
	}
	if body := r.last(); !strings.Contains(body, "one") || ran(r) != 1 {
		t.Errorf("the command ran %d times; the model was told %s", ran(r), body)
	}
}
