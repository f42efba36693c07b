package native_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestTwoServers opens one conversation in two servers. The second is refused while the first
// runs a turn. Afterwards it runs a turn, and then the first continues from there.
func TestTwoServers(t *testing.T) {
	b := setup(t, "", native.Limits{}, providertest.Say("one"))
	first, h := b.engine, &host{}
	c := b.start(t, h, protocol.Config{})
	path := configured(t, h).RolloutPath
	turn(t, c, say("first"))
	b.reopen(t)
	second := b.engine
	h2 := &host{}
	other := b.resume(t, path, protocol.Config{}, h2)

	// During a turn of the first server.
	const words = "a turn of this conversation is running elsewhere"
	b.provider.Add(providertest.Turn{Func: func(providertest.Request) providertest.Turn {
		h2.take()
		if err := other.Turn(t.Context(), say("never said")); !as[*engine.TurnError](err) || !strings.Contains(err.Error(), words) {
			t.Errorf("a turn of the second: %v", err)
		}
		if events := h2.take(); len(events) != 3 || events[2] != "task_complete null" {
			t.Errorf("events of the second: %q", events)
		}
		if _, err := second.Resume(t.Context(), engine.Saved{File: path}, protocol.Config{}, &host{}); !as[*engine.RefusedError](err) || !strings.Contains(err.Error(), words) {
			t.Errorf("Resume by the second: %v", err)
		}
		return providertest.Say("two")
	}})
	turn(t, c, say("second"))

	// After that turn.
	b.provider.Add(providertest.Say("three"))
	turn(t, other, say("third"))
	inOrder(t, lastRequest(b), "first", "one", "second", "two", "third")
	b.provider.Add(providertest.Say("four"))
	h.take()
	turn(t, c, say("fourth"))
	h.told(t, "another program has written")
	inOrder(t, lastRequest(b), "first", "one", "second", "two", "third", "three", "fourth")
	if text := lastRequest(b); strings.Contains(text, "never said") || strings.Count(text, "third") != 1 {
		t.Errorf("the history of the first: %s", text)
	}
	validRequests(t, b.provider)
	closed(t, c)
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	inOrder(t, b.resumed(t, path), "one", "two", "three", "four")
}

// TestRolloutDoesNotLoosen writes a looser policy into the rollout: the conversation keeps its own.
func TestRolloutDoesNotLoosen(t *testing.T) {
	b := setup(t, "", native.Limits{}, providertest.Say("one"), providertest.Call(providertest.Shell("c1", "touch", "made")), providertest.Say("two"))
	h := &host{exec: always(elicit.Denied)}
	c := b.start(t, h, protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted, Sandbox: protocol.SandboxReadOnly})
	turn(t, c, say("first"))
	change(t, filepath.Join(b.home, "config.toml"), `"untrusted"`, `"never"`)
	change(t, filepath.Join(b.home, "config.toml"), `model = "scripted"`, `model = "other"`)
	appendTo(t, configured(t, h).RolloutPath, `{"timestamp":"2026-01-01T00:00:00.000Z","type":"turn_context","payload":{"cwd":"/","approval_policy":"never",`+
		`"sandbox_policy":{"mode":"danger-full-access"},"model":"loose","summary":"auto"}}`+"\n")
	turn(t, c, say("second"))
	diff(t, "questions", 1, h.asked)
	b.absent(t, "made")
	inOrder(t, lastRequest(b), `"model":"scripted"`, "first", "approval_policy", "untrusted", "read-only", "second")
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}
