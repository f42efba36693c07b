package native_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// news returns the recorded background events and drops them.
func (h *host) news() (texts []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.events {
		if m, ok := m.(protocol.BackgroundEvent); ok {
			texts = append(texts, m.Message)
		}
	}
	h.events = nil
	return texts
}

// resumed returns the only request of a new engine that continues a conversation.
func (b *bench) resumed(t *testing.T, path string) string {
	t.Helper()
	b.reopen(t)
	b.provider.Add(providertest.Say("resumed"))
	c := b.resume(t, path, protocol.Config{}, &host{})
	defer c.Close()
	turn(t, c, say("the end"))
	validRequests(t, b.provider)
	return lastRequest(b)
}

// TestRolloutIsCompletedLater makes the rollout unwritable for a time: turns fail without a
// request to the model, and the rollout is complete afterwards.
func TestRolloutIsCompletedLater(t *testing.T) {
	b := setup(t, "", native.Limits{}, providertest.Say("one"), providertest.Say("three"))
	h := &host{exec: approve}
	c := b.start(t, h, protocol.Config{})
	path := configured(t, h).RolloutPath
	turn(t, c, say("first"))
	aside := path + ".aside"
	if err := errors.Join(os.Rename(path, aside), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	h.take()
	var failed *engine.TurnError
	if err := c.Turn(t.Context(), say("second")); !errors.As(err, &failed) || !strings.Contains(failed.Message, "nothing more was run") {
		t.Errorf("while it cannot be written: %v", err)
	}
	if n := len(b.provider.Requests()); n != 1 {
		t.Errorf("the model was asked %d times", n-1)
	}
	if news := h.news(); len(news) != 1 || !strings.Contains(news[0], "cannot be written to its file") {
		t.Errorf("while it cannot be written: %q", news)
	}
	if err := errors.Join(os.Remove(path), os.Rename(aside, path)); err != nil {
		t.Fatal(err)
	}
	turn(t, c, say("third"))
	if news := h.news(); len(news) != 1 || !strings.Contains(news[0], "complete again") {
		t.Errorf("when it can be written again: %q", news)
	}
	closed(t, c)
	inOrder(t, b.resumed(t, path), "first", "one", "second", "third", "three", "the end")
}

// TestRemovedRollout removes the rollout of an open conversation: it is written again.
func TestRemovedRollout(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(path string) error{
		"removed":             os.Remove,
		"with its folder":     func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"emptied":             func(path string) error { return os.Truncate(path, 0) },
		"cut within the line": func(path string) error { return os.Truncate(path, 200) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, when := range []string{"between turns", "within a turn"} {
				t.Run(when, func(t *testing.T) {
					b := setup(t, "", native.Limits{}, providertest.Say("one"))
					h := &host{}
					c := b.start(t, h, protocol.Config{})
					path := configured(t, h).RolloutPath
					turn(t, c, say("first"))
					second := providertest.Say("two")
					lost := func() {
						if err := lose(path); err != nil {
							t.Error(err)
						}
					}
					if when == "within a turn" {
						second = providertest.Turn{Func: func(providertest.Request) providertest.Turn {
							lost()
							return providertest.Say("two")
						}}
					} else {
						lost()
					}
					b.provider.Add(second)
					h.take()
					turn(t, c, say("second"))
					if news := h.news(); len(news) != 1 || !strings.Contains(news[0], path+" was removed or cut; it was written again") {
						t.Errorf("background events: %q", news)
					}
					closed(t, c)
					inOrder(t, b.resumed(t, path), "first", "one", "second", "two", "the end")
					list, err := b.engine.List(t.Context(), protocol.ListConversationsParams{})
					if err != nil || len(list.Items) != 1 || list.Items[0].Preview != "first" {
						t.Errorf("listed: %+v, %v", list, err)
					}
				})
			}
		})
	}
}

// TestRemovedRolloutHasMessages checks that a client which resumes a conversation sees its
// messages although the file was written again.
func TestRemovedRolloutHasMessages(t *testing.T) {
	b := setup(t, "", native.Limits{}, providertest.Say("one"), providertest.Say("two"))
	h := &host{}
	c := b.start(t, h, protocol.Config{})
	path := configured(t, h).RolloutPath
	turn(t, c, say("first"))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	turn(t, c, say("second"))
	closed(t, c)
	h = &host{}
	again := b.resume(t, path, protocol.Config{}, h)
	defer again.Close()
	var texts []string
	for _, raw := range configured(t, h).InitialMessages {
		m, err := protocol.ParseEvent(raw)
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case protocol.UserMessage:
			texts = append(texts, m.Message)
		case protocol.AgentMessage:
			texts = append(texts, m.Message)
		}
	}
	if want := []string{"first", "one", "second", "two"}; !slices.Equal(texts, want) {
		t.Errorf("said %q, want %q", texts, want)
	}
}

// TestArchivedWhileOpen moves the file of an open conversation to the archive: the conversation
// continues there.
func TestArchivedWhileOpen(t *testing.T) {
	for _, when := range []string{"between turns", "within a turn"} {
		t.Run(when, func(t *testing.T) {
			b := setup(t, "", native.Limits{}, providertest.Say("one"))
			h := &host{}
			c := b.start(t, h, protocol.Config{})
			path := configured(t, h).RolloutPath
			turn(t, c, say("first"))
			archive := func() {
				to := filepath.Join(b.home, "archived_sessions", filepath.Base(path))
				if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.Rename(path, to)); err != nil {
					t.Error(err)
				}
			}
			second := providertest.Say("two")
			switch when {
			case "within a turn":
				second = providertest.Turn{Func: func(providertest.Request) providertest.Turn {
					archive()
					return providertest.Say("two")
				}}
			default:
				archive()
			}
			b.provider.Add(second)
			h.take()
			turn(t, c, say("second"))
			if news := h.news(); len(news) != 0 {
				t.Errorf("background events: %q", news)
			}
			if _, err := os.Stat(path); err == nil {
				t.Error("the file is in the sessions again")
			}
			text, err := os.ReadFile(filepath.Join(b.home, "archived_sessions", filepath.Base(path)))
			if err != nil {
				t.Fatal(err)
			}
			inOrder(t, string(text), "first", "one", "second", "two")
		})
	}
}
