package native_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

var contexts = regexp.MustCompile(`"approval_policy":"([a-z-]+)","sandbox_policy":(\{[^}]*\})`)

// TestChosenStaysChosen begins conversations whose server ends before their turn, so that the rollout has no policies.
// Another server resumes them: what the calls chose still holds, and nothing is looser than that or the configuration.
func TestChosenStaysChosen(t *testing.T) {
	table := func(text string) protocol.Config {
		return protocol.Config{Overrides: rawConfig("sandbox_workspace_write", text)}
	}
	for _, tt := range []struct {
		name        string
		call, again protocol.Config // that begins, and that resumes and ends before its turn, too
		want        string
	}{
		{"nothing", protocol.Config{}, protocol.Config{}, `never {"mode":"workspace-write","writable_roots":["/a","/b"],"network_access":true}`},
		{"untrusted", protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted}, protocol.Config{}, `untrusted {"mode":"workspace-write","writable_roots":["/a","/b"],"network_access":true}`},
		{"read-only", protocol.Config{Sandbox: protocol.SandboxReadOnly}, protocol.Config{}, `never {"mode":"read-only"}`},
		{"fewer roots", table(`{"writable_roots":["/b"]}`), protocol.Config{}, `never {"mode":"workspace-write","writable_roots":["/b"],"network_access":true}`},
		{"no network", table(`{"network_access":false}`), protocol.Config{}, `never {"mode":"workspace-write","writable_roots":["/a","/b"]}`},
		{"more is not kept", protocol.Config{Sandbox: protocol.SandboxDangerFullAccess}, protocol.Config{}, `never {"mode":"workspace-write","writable_roots":["/a","/b"],"network_access":true}`},
		{"a later call chooses less", protocol.Config{}, protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted, Sandbox: protocol.SandboxReadOnly}, `untrusted {"mode":"read-only"}`},
		{"a later call chooses one of them", protocol.Config{Sandbox: protocol.SandboxReadOnly}, protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted}, `untrusted {"mode":"read-only"}`},
		{"a later call chooses more", protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted}, protocol.Config{ApprovalPolicy: protocol.ApprovalNever}, `never {"mode":"workspace-write","writable_roots":["/a","/b"],"network_access":true}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, "---\nwire_api = \"chat\"\n[sandbox_workspace_write]\nwritable_roots = [\"/a\", \"/b\"]\nnetwork_access = true\n", native.Limits{}, providertest.Say("hello"))
			change(t, filepath.Join(b.home, "config.toml"), "danger-full-access", "workspace-write")
			change(t, filepath.Join(b.home, "config.toml"), `"untrusted"`, `"never"`)
			b.reopen(t)
			c := b.start(t, &host{}, tt.call)
			path := fileOf(t, b.engine, c.ID())
			closed(t, c)
			if tt.again.ApprovalPolicy != "" || tt.again.Sandbox != "" {
				b.reopen(t)
				closed(t, b.resume(t, path, tt.again, &host{}))
			}
			b.reopen(t)
			says(t, b.resume(t, path, protocol.Config{}, &host{}), "go")
			_, turns, _ := strings.Cut(read(t, path), "\n")
			got := contexts.FindStringSubmatch(turns)
			if got == nil || got[1]+" "+got[2] != tt.want {
				t.Errorf("the turn got %q, want %s", got, tt.want)
			}
		})
	}
}

// TestChoicesAreKept resumes a conversation whose server ended before its first turn, and one whose turn changed the
// effort. What the calls chose still holds, by arguments and by keys of config, but for what the call that resumes it chooses.
func TestChoicesAreKept(t *testing.T) {
	for _, first := range []protocol.Config{
		{Choices: protocol.Choices{BaseInstructions: new("BASE"), DeveloperInstructions: new("EXPERT"), CompactPrompt: new("SUM"), IncludePlanTool: new(true), Effort: "low"}},
		{
			Choices:   protocol.Choices{BaseInstructions: new("BASE"), CompactPrompt: new("SUM")}, // of which there is no key
			Overrides: protocol.Overrides{"developer_instructions": "EXPERT", "include_plan_tool": true, "model_reasoning_effort": "low"},
		},
	} {
		b := setup(t, "---\nwire_api = \"chat\"", native.Limits{}, providertest.Say("1"), providertest.Say("2"), providertest.Say("3"))
		c := b.start(t, &host{}, first)
		path := fileOf(t, b.engine, c.ID())
		closed(t, c)
		b.reopen(t)
		c = b.resume(t, path, protocol.Config{}, &host{})
		says(t, c, "go")
		for _, part := range []string{"BASE", "EXPERT", "update_plan", `"reasoning_effort":"low"`} {
			inOrder(t, lastRequest(b), part)
		}
		in := say("more")
		in.Effort = "high"
		turn(t, c, in)
		closed(t, c)
		b.reopen(t)
		says(t, b.resume(t, path, protocol.Config{Choices: protocol.Choices{DeveloperInstructions: new("OTHER")}}, &host{}), "and")
		for _, part := range []string{"BASE", "OTHER", "update_plan", `"reasoning_effort":"high"`} {
			inOrder(t, lastRequest(b), part)
		}
		kept := read(t, filepath.Join(b.home, "codex-mcp", "threads", c.ID()+".json"))
		for _, part := range []string{`"compact-prompt":"SUM"`, `"developer-instructions":"OTHER"`, `"effort":"high"`} {
			inOrder(t, kept, part)
		}
	}
}

// TestChosenCannotBeKept resumes a conversation where what its calls chose can be neither written nor read. Nothing starts.
func TestChosenCannotBeKept(t *testing.T) {
	b := setup(t, "", native.Limits{}, providertest.Say("hello"))
	path := b.first(t, protocol.Config{})
	folder := filepath.Join(b.home, "codex-mcp", "threads")
	must.OK(t, os.RemoveAll(folder))
	write(t, folder, "")
	h := &host{}
	_, err := b.engine.Resume(t.Context(), engine.Saved{File: path}, protocol.Config{}, h)
	if err == nil || !strings.Contains(err.Error(), "nothing was started: ") || !strings.Contains(err.Error(), folder) || len(h.events) > 0 {
		t.Errorf("%v, %v", err, h.events)
	}
	all := must.Get(b.engine.List(t.Context(), protocol.ListConversationsParams{}))(t)
	text := must.Get(json.Marshal(all))(t)
	must.Equal(t, "conversations in "+string(text), 1, len(all.Items))
}
