package native_test

import (
	"errors"
	"os"
	"path/filepath"
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

// told checks that there was one background event, with these words.
func (h *host) told(t testing.TB, words string) {
	t.Helper()
	if news := h.news(); len(news) != 1 || !strings.Contains(news[0], words) {
		t.Errorf("background events %q, want one with %q", news, words)
	}
}

// resumed returns the only request of a new engine that continues a conversation.
func (b *bench) resumed(t *testing.T, path string) string {
	t.Helper()
	b.reopen(t)
	b.provider.Add(providertest.Say("resumed"))
	c := b.resume(t, path, protocol.Config{}, &host{})
	says(t, c, "the end")
	closed(t, c)
	validRequests(t, b.provider)
	return lastRequest(b)
}

// TestRolloutIsCompletedLater makes the rollout unwritable for a time: turns fail without a
// request to the model, and the rollout is complete afterwards.
func TestRolloutIsCompletedLater(t *testing.T) {
	b := setup(t, "", native.Limits{}, providertest.Say("one"), providertest.Say("three"))
	h := &host{exec: allow}
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
	diff(t, "requests", 1, len(b.provider.Requests()))
	h.told(t, "cannot be written to its file")
	if err := errors.Join(os.Remove(path), os.Rename(aside, path)); err != nil {
		t.Fatal(err)
	}
	turn(t, c, say("third"))
	h.told(t, "complete again")
	closed(t, c)
	inOrder(t, b.resumed(t, path), "first", "one", "second", "third", "three", "the end")
}

// TestRemovedRollout removes or cuts the rollout of an open conversation: nothing more runs, and the
// rollout stays as it is.
func TestRemovedRollout(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(path string) error{
		"removed":             os.Remove,
		"with its folder":     func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"emptied":             func(path string) error { return os.Truncate(path, 0) },
		"cut within the line": func(path string) error { return os.Truncate(path, 200) },
		"archived": func(path string) error {
			to := filepath.Join(filepath.Dir(path), "../../../../archived_sessions")
			return errors.Join(os.MkdirAll(to, 0o700), os.Rename(path, filepath.Join(to, filepath.Base(path))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, when := range []string{"between turns", "within a turn"} {
				t.Run(when, func(t *testing.T) {
					b := setup(t, "", native.Limits{}, providertest.Say("one"))
					h := &host{exec: allow}
					c := b.start(t, h, protocol.Config{})
					path := configured(t, h).RolloutPath
					turn(t, c, say("first"))
					requests := 1
					if when == "within a turn" {
						requests++
						b.provider.Add(providertest.Turn{Func: func(providertest.Request) providertest.Turn {
							if err := lose(path); err != nil {
								t.Error(err)
							}
							return providertest.Call(providertest.Shell("c1", "touch", "made"))
						}})
					} else if err := lose(path); err != nil {
						t.Fatal(err)
					}
					h.take()
					for range 2 {
						var failed *engine.TurnError
						if err := c.Turn(t.Context(), say("second")); !errors.As(err, &failed) || !strings.Contains(failed.Message, "nothing more was run") || !strings.Contains(failed.Message, "was removed or cut") {
							t.Errorf("the turn ends with %v", err)
						}
					}
					diff(t, "requests", requests, len(b.provider.Requests()))
					b.absent(t, "made")
					h.told(t, "cannot be written to its file")
					_ = c.Close() // the missing lines are lost
					if info, err := os.Stat(path); err == nil && info.Size() > 200 {
						t.Error("the rollout was written to")
					}
				})
			}
		})
	}
}
