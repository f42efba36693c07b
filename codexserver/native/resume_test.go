package native_test

import (
	"encoding/json"
	"fmt"
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
)

// configured returns the first event of a conversation.
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

// keepAll lets a resumed conversation keep what its last turn had.
func keepAll(protocol.Access) bool { return true }

// TestResumeKeepsThePolicies checks that a conversation continues with the policies of its last
// turn, as without a restart, unless the call chooses others.
func TestResumeKeepsThePolicies(t *testing.T) {
	for _, tt := range []struct {
		name      string
		call      protocol.Config
		questions int
	}{
		{"its own", protocol.Config{Keep: keepAll}, 0},
		{"its own folder and model aside", protocol.Config{Keep: keepAll, Overrides: map[string]json.RawMessage{"model": json.RawMessage(`"x"`)}}, 0},
		{"another by argument", protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted}, 1},
		{"another by override", protocol.Config{Overrides: map[string]json.RawMessage{"approval_policy": json.RawMessage(`"untrusted"`)}}, 1},
		{"none that allows more", protocol.Config{}, 1},
		{"a profile", protocol.Config{Overrides: map[string]json.RawMessage{"profile": json.RawMessage(`"other"`)}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, "---\nwire_api = \"chat\"\n[profiles.other]\nmodel = \"y\"", native.Limits{},
				providertest.Say("hello"), providertest.Call(providertest.Shell("c1", "touch", "made")), providertest.Say("done"))
			path := b.first(t, protocol.Config{ApprovalPolicy: protocol.ApprovalNever})
			b.reopen(t)
			h := &host{exec: always(elicit.Denied)}
			says(t, b.resume(t, path, tt.call, h), "second")
			diff(t, "questions", tt.questions, h.asked)
		})
	}
}

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
			diff(t, "sandbox", string(tt.want), contexts[len(contexts)-1][1])
		})
	}
}

// TestReadOnlyStaysReadOnly resumes a conversation to read only, whose rollout allows more.
func TestReadOnlyStaysReadOnly(t *testing.T) {
	b := setup(t, "---\nwire_api = \"responses\"", native.Limits{}, providertest.Say("hello"),
		providertest.Call(providertest.Shell("c1", "touch", "made")), providertest.Say("done"))
	path := b.first(t, protocol.Config{ApprovalPolicy: protocol.ApprovalNever, WebSearch: new(true)})
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
	before := strings.ReplaceAll(recorded, "$CWD", b.cwd)
	write(t, file, before)
	server := codexserver.New(b.engine, &codexserver.Options{Home: b.home, Folder: b.cwd, Changes: codexserver.ChangeOptions{Off: true}})
	c := servertest.Connect(t, server, nil)
	r, err := c.Tool(t.Context(), "codex-reply", map[string]any{"threadId": id, "prompt": "the third prompt"})
	if err != nil || r.Content != "the third answer" || r.Thread != id {
		t.Fatalf("%v, %+v", err, r)
	}
	inOrder(t, lastRequest(b), "the first prompt", "echo from the command", "Output:", "the first answer", "the second prompt", "the third prompt")
	if added, ok := strings.CutPrefix(read(t, file), before); !ok || !strings.Contains(added, "the third answer") {
		t.Errorf("the conversation does not go on in its file, which has %q more", added)
	}
}
