//go:build realcodex && unix

package appserver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// takeUp kills Codex, as the launcher does when the server is killed, starts another engine, and
// continues the turn there. It returns what a person was told.
func (r *real) takeUp(t *testing.T, conv engine.Conversation, h engine.Host, end <-chan error, in protocol.TurnInput) (notes []string, err error) {
	t.Helper()
	kill(t, r.engine.PID())
	<-end
	r.restart(t)
	if err := r.engine.Traits().CanContinue(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := r.resume(t, conv, h, protocol.Config{Continues: true})
	in.Continue = func(words string) { notes = append(notes, words) }
	err = again.Turn(t.Context(), in)
	return notes, err
}

// TestRealContinue kills the real Codex while a turn waits for the model, while a command runs,
// and while a question is open. Another one continues the turn, and no command runs twice.
func TestRealContinue(t *testing.T) {
	needs(t, newQuestions)
	for name, told := range map[string]int{"model": 0, "command": 1, "question": 1} {
		t.Run(name, func(t *testing.T) {
			rest := []providertest.Turn{providertest.Say("went on")}
			if name == "question" {
				rest = []providertest.Turn{escalated("c2"), providertest.Say("went on")}
			}
			r, conv, _, end, _ := held(t, name, rest...)
			after := decide(elicit.Approved)
			notes, err := r.takeUp(t, conv, after, end, protocol.TurnInput{Key: "key-of-the-turn"})
			if err != nil || after.answer() != "went on" || len(notes) != told {
				t.Errorf("%v, %q, notes %q", err, after.answer(), notes)
			}
			if n := ran(r); name == "command" && n != 1 || name == "question" && !made(r) {
				t.Errorf("the command ran %d times, made %v", n, made(r))
			}
			// The launcher, node and Codex. An app-server that has just begun writes down what the user's shell has, by
			// short programs.
			left := r.processes(t, "")
			for end := time.Now().Add(10 * time.Second); name == "command" && len(left) > 3 && time.Now().Before(end); left = r.processes(t, "") {
				<-time.After(20 * time.Millisecond)
			}
			if name == "command" && len(left) > 3 {
				t.Errorf("left: %q", left)
			}
			body := string(r.Requests()[1].Body)
			if !strings.Contains(body, "Find out what such a call has done") || name != "model" && !strings.Contains(body, `"aborted"`) {
				t.Errorf("the model was told %s", body)
			}
		})
	}
}

func ran(r *real) int {
	text, _ := os.ReadFile(filepath.Join(r.cwd, "ran.txt")) // it may not exist yet
	return strings.Count(string(text), "\n")
}

// TestRealContinueNot continues turns that need it not or cannot be: one that had ended, one
// that never began, one after which the conversation went on, and one that had failed.
func TestRealContinueNot(t *testing.T) {
	needs(t, newQuestions)
	r := newReal(t, "", providertest.Say("one"), providertest.Say("two"), providertest.Turn{Status: 400, Body: "no such word"})
	h := &recorder{}
	conv := r.start(t, h, protocol.Config{})
	turn := func(ctx context.Context, n int) error {
		return conv.Turn(ctx, protocol.TurnInput{Items: protocol.TextInput("go"), Key: fmt.Sprint("key-", n)})
	}
	again := func(key string) (*recorder, error) {
		t.Helper()
		h := &recorder{}
		end := make(chan error, 1)
		end <- nil
		_, err := r.takeUp(t, conv, h, end, protocol.TurnInput{Key: key})
		return h, err
	}
	if err := turn(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if h, err := again("key-1"); err != nil || h.answer() != "one" {
		t.Errorf("ended: %v, %q", err, h.answer())
	}
	if _, err := again("key-0"); err == nil || !strings.Contains(err.Error(), "nothing of it ran") {
		t.Errorf("never begun: %v", err)
	}
	conv = r.resume(t, conv, h, protocol.Config{})
	if err := turn(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if _, err := again("key-1"); err == nil || !strings.Contains(err.Error(), "was continued before") {
		t.Errorf("overtaken: %v", err)
	}
	conv = r.resume(t, conv, h, protocol.Config{})
	if err := turn(t.Context(), 3); err == nil {
		t.Error("the third turn did not fail")
	}
	if h, err := again("key-3"); err == nil || !strings.Contains(err.Error(), "no such word") {
		t.Errorf("failed: %v, %q", err, h.types())
	}
	if n := len(r.Requests()); n != 3 {
		t.Errorf("%d requests to the model", n)
	}
}

// keepIn gives Codex a home whose store is a folder. An empty home gets the conversations from it.
func (r *real) keepIn(t *testing.T, disk string, epoch uint64) {
	t.Helper()
	m, _ := workertest.Mirror(t, r.home, disk, epoch)
	r.options.CodexHome, r.options.Store = r.home, m
	r.restart(t)
}

// TestRealContinueElsewhere loses the home while the second turn of a conversation runs. The real
// Codex on another machine continues the conversation, and does not say that nothing of that
// turn ran.
func TestRealContinueElsewhere(t *testing.T) {
	needs(t, newQuestions)
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
	if _, err := workertest.OpenDir(disk, 2); err != nil {
		t.Fatal(err)
	}
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
