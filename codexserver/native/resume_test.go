package native_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func configured(t testing.TB, h *host) protocol.SessionConfigured {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.events {
		if c, ok := m.(protocol.SessionConfigured); ok {
			return c
		}
	}
	t.Fatal("no session_configured")
	panic("unreachable")
}

func lastRequest(b *bench) string {
	all := b.provider.Requests()
	return string(all[len(all)-1].Body)
}

// inOrder fails the test unless text has all parts, one after another.
func inOrder(t testing.TB, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, p := range parts {
		_, after, found := strings.Cut(rest, p)
		if !found {
			t.Fatalf("want %q, after the parts before it, in %s", p, text)
		}
		rest = after
	}
}

var _ engine.Resumer = (*native.Engine)(nil)

// first runs a conversation of one turn, and returns its file.
func (b *bench) first(t testing.TB, cfg protocol.Config) string {
	t.Helper()
	c := b.start(t, &host{}, cfg)
	says(t, c, "first")
	closed(t, c)
	path := fileOf(t, b.engine, c.ID())
	return path
}

func keepAll(protocol.Access) bool { return true }

// TestResumeWithinTheConfiguration resumes conversations whose callers had more choices than
// the caller that resumes them.
func TestResumeWithinTheConfiguration(t *testing.T) {
	for _, tt := range []struct {
		configured, last, want protocol.SandboxMode
		bounded                bool
	}{
		{protocol.SandboxReadOnly, protocol.SandboxDangerFullAccess, protocol.SandboxReadOnly, true},
		{protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess, protocol.SandboxWorkspaceWrite, true},
		{protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite, protocol.SandboxReadOnly, true},
		{protocol.SandboxDangerFullAccess, protocol.SandboxReadOnly, protocol.SandboxReadOnly, true},
		{protocol.SandboxReadOnly, protocol.SandboxDangerFullAccess, protocol.SandboxDangerFullAccess, false},
	} {
		t.Run(fmt.Sprintf("%s, last %s, bounded %t", tt.configured, tt.last, tt.bounded), func(t *testing.T) {
			b := setup(t, "---\nwire_api = \"chat\"", native.Limits{}, providertest.Say("hello"), providertest.Say("again"))
			path := b.first(t, protocol.Config{Sandbox: tt.last})
			change(t, filepath.Join(b.home, "config.toml"), "danger-full-access", string(tt.configured))
			b.reopen(t)
			cfg := protocol.Config{}
			if !tt.bounded {
				cfg.Keep = keepAll
			}
			says(t, b.resume(t, path, cfg, &host{}), "second")
			contexts := regexp.MustCompile(`"sandbox_policy":\{"(?:mode|type)":"([a-z-]+)"`).FindAllStringSubmatch(read(t, path), -1)
			must.Equal(t, "sandbox", string(tt.want), contexts[len(contexts)-1][1])
		})
	}
}

// TestResumeKeepsThePolicies checks that a conversation continues with the policies of its last
// turn, as without a restart, unless the call chooses others.
func TestResumeKeepsThePolicies(t *testing.T) {
	for _, tt := range []struct {
		name      string
		call      protocol.Config
		questions int
	}{
		{"its own", protocol.Config{Keep: keepAll}, 0},
		{"its own folder and model aside", protocol.Config{Keep: keepAll, Overrides: protocol.Overrides{"model": "x"}}, 0},
		{"another by argument", protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted}, 1},
		{"another by override", protocol.Config{Overrides: protocol.Overrides{"approval_policy": "untrusted"}}, 1},
		{"none that allows more", protocol.Config{}, 1},
		{"a profile", protocol.Config{Overrides: protocol.Overrides{"profile": "other"}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, "---\nwire_api = \"chat\"\n[profiles.other]\nmodel = \"y\"", native.Limits{},
				providertest.Say("hello"), providertest.Call(providertest.Shell("c1", "touch", "made")), providertest.Say("done"))
			path := b.first(t, protocol.Config{ApprovalPolicy: protocol.ApprovalNever})
			b.reopen(t)
			h := &host{exec: always(elicit.Denied)}
			says(t, b.resume(t, path, tt.call, h), "second")
			must.Equal(t, "questions", tt.questions, h.asked)
		})
	}
}

// TestReadOnlyStaysReadOnly resumes a conversation to read only, whose rollout allows more.
func TestReadOnlyStaysReadOnly(t *testing.T) {
	b := setup(t, "---\nwire_api = \"responses\"", native.Limits{}, providertest.Say("hello"),
		providertest.Call(providertest.Shell("c1", "touch", "made")), providertest.Say("done"))
	path := b.first(t, protocol.Config{ApprovalPolicy: protocol.ApprovalNever, Choices: protocol.Choices{WebSearch: new(true)}})
	says(t, b.resume(t, path, protocol.Config{ReadOnly: true}, &host{exec: allow}), "second")
	b.absent(t, "made")
	without(t, string(b.provider.Requests()[1].Body), "web_search")
}

// TestAfterCodex continues a conversation of Codex whose quota has ended, by codex-reply. The file is one of
// Codex 0.171.0: a turn with a command, and one that failed at the limit.
func TestAfterCodex(t *testing.T) {
	t.Parallel()
	const id = "01a219a2-3caf-7570-89c3-aaa7cf1b6fb2"
	b := setup(t, "", native.Limits{}, providertest.Say("the third answer"))
	recorded := read(t, "testdata/codex-0.171.0.jsonl")
	file := filepath.Join(b.home, "sessions", "2026", "11", "26", "rollout-2026-11-26T20-53-12-"+id+".jsonl")
	added := func(item string) string {
		return `{"timestamp":"2026-11-26T20:59:00.000Z","type":"response_item","payload":` + item + "}\n"
	}
	before := strings.ReplaceAll(recorded, "$CWD", b.cwd) +
		added(`{"type":"function_call_output","call_id":"lost","output":"x"}`) +
		added(`{"type":"function_call","name":"shell","arguments":"{}","call_id":"open"}`)
	write(t, file, before)
	server := codexserver.New(b.engine, &codexserver.Options{Home: b.home, Folder: b.cwd, Changes: codexserver.ChangeOptions{Read: new(false)}})
	c := servertest.Connect(t, server, nil)
	r, err := c.Tool(t.Context(), "codex-reply", map[string]any{"threadId": id, "prompt": "the third prompt"})
	if err != nil || r.Content != "the third answer" || r.Thread != id {
		t.Fatalf("%v, %+v", err, r)
	}
	inOrder(t, lastRequest(b), "the first prompt", "echo from the command", "Output:", "the first answer", "the second prompt", "an output without its call", "there is no output of this call", "the third prompt")
	if added, ok := strings.CutPrefix(read(t, file), before); !ok || !strings.Contains(added, "the third answer") {
		t.Errorf("the conversation does not go on in its file, which has %q more", added)
	}
}

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
	must.OK(t, os.Rename(path, aside), os.Mkdir(path, 0o700))
	h.take()
	var failed *engine.TurnError
	if err := c.Turn(t.Context(), say("second")); !errors.As(err, &failed) || !strings.Contains(failed.Message, "nothing more was run") {
		t.Errorf("while it cannot be written: %v", err)
	}
	must.Equal(t, "requests", 1, len(b.provider.Requests()))
	h.told(t, "cannot be written to its file")
	must.OK(t, os.Remove(path), os.Rename(aside, path))
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
							must.Check(t, lose(path))
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
					must.Equal(t, "requests", requests, len(b.provider.Requests()))
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
	must.OK(t, first.Close())
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
	must.Equal(t, "questions", 1, h.asked)
	b.absent(t, "made")
	inOrder(t, lastRequest(b), `"model":"scripted"`, "first", "approval_policy", "untrusted", "read-only", "second")
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))(t)
	defer f.Close()
	must.Get(f.WriteString(text))(t)
}
