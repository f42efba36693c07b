package native_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
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
	other, err := second.Resume(t.Context(), path, protocol.Config{}, h2)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	// During a turn of the first server.
	words := fmt.Sprintf("codex-mcp dev (process %d on ", os.Getpid())
	b.provider.Add(providertest.Turn{Func: func(providertest.Request) providertest.Turn {
		h2.take()
		var failed *engine.TurnError
		if err := other.Turn(t.Context(), say("never said")); !errors.As(err, &failed) || !strings.Contains(err.Error(), words) {
			t.Errorf("a turn of the second: %v", err)
		}
		if events := h2.take(); len(events) != 3 || events[2] != "task_complete null" {
			t.Errorf("events of the second: %q", events)
		}
		var refused *engine.RefusedError
		if _, err := second.Resume(t.Context(), path, protocol.Config{}, &host{}); !errors.As(err, &refused) || !strings.Contains(err.Error(), words) {
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
	if news := h.news(); len(news) != 1 || !strings.Contains(news[0], "another program has written") {
		t.Errorf("background events: %q", news)
	}
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

// TestOtherProgramWrites lets another program write to the rollout between turns, such as Codex,
// which ignores our locks.
func TestOtherProgramWrites(t *testing.T) {
	for _, away := range []bool{false, true} {
		t.Run(fmt.Sprint("unloaded: ", away), func(t *testing.T) {
			b := setup(t, "", native.Limits{}, providertest.Say("one"), providertest.Say("two"))
			h := &host{}
			c := b.start(t, h, protocol.Config{})
			path := configured(t, h).RolloutPath
			turn(t, c, say("first"))
			if away {
				unload(t, c)
			}
			appendTo(t, path, `{"timestamp":"2026-01-01T00:00:00.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"from elsewhere"}]}}`+"\n")
			h.take()
			turn(t, c, say("second"))
			inOrder(t, lastRequest(b), "first", "one", "from elsewhere", "second")
			if news := h.news(); len(news) != 1 || !strings.Contains(news[0], "another program has written") {
				t.Errorf("background events: %q", news)
			}
		})
	}
}

// TestNoLocks checks that turns run although nothing can be locked, such as on a full disk.
func TestNoLocks(t *testing.T) {
	b := setup(t, "", native.Limits{}, providertest.Say("one"), providertest.Say("two"))
	if err := os.WriteFile(filepath.Join(b.home, "codex-mcp-locks"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := b.start(t, &host{}, protocol.Config{})
	turn(t, c, say("first"))
	unload(t, c)
	turn(t, c, say("second"))
	inOrder(t, lastRequest(b), "first", "one", "second")
}
