//go:build realcodex && unix

package appserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/nightly"
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
	t.Parallel()
	needs(t, newQuestions)
	for name, told := range map[string]int{"model": 0, "command": 1, "question": 1} {
		if name == "model" && !nightly.Tests() {
			continue
		}
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
