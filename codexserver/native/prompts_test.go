package native_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// roles returns the messages of the last request, each as its role and the marks in it. Only those of a
// developer count in the system message, which has other words.
func roles(t testing.TB, b *bench, developer string, marks ...string) []string {
	t.Helper()
	var req struct {
		Input, Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	parse(t, []byte(lastRequest(b)), &req)
	var out []string
	for _, m := range append(req.Input, req.Messages...) {
		said, count := m.Role, strings.Fields(developer)
		if m.Role != "system" {
			count = append(count, marks...)
		}
		for _, mark := range count {
			if strings.Contains(string(m.Content), mark) {
				said += " " + mark
			}
		}
		if said != "system" {
			out = append(out, said)
		}
	}
	return out
}

const environment = "environment_context"

func TestDeveloperInstructions(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		b := setup(t, "developer_instructions = \"CONFIGURED\"\n---\nwire_api = \""+wire+"\"", native.Limits{})
		for _, tt := range []struct {
			name string
			cfg  protocol.Config
			want string
		}{
			{"of config.toml", protocol.Config{}, "CONFIGURED"},
			{"of the call", protocol.Config{DeveloperInstructions: new("EXPERT")}, "EXPERT"},
			{"of the call's config", protocol.Config{Overrides: map[string]json.RawMessage{"developer_instructions": json.RawMessage(`"KEY"`)}}, "KEY"},
			{"none for this call", protocol.Config{DeveloperInstructions: new("")}, ""},
		} {
			b.provider.Add(providertest.Say("ok"))
			turn(t, b.start(t, &host{}, tt.cfg), say("hi"))
			want, role := []string{"user " + environment, "user hi"}, "developer "
			if wire == "chat" { // any template takes it
				want, role = []string{"user " + environment + " hi"}, "system "
			}
			if tt.want != "" {
				want = append([]string{role + tt.want}, want...)
			}
			diff(t, tt.name, want, roles(t, b, "CONFIGURED EXPERT KEY", environment, "hi"))
		}
	})
}

// TestPromptsAreKept checks both prompts after a compaction, after a restart, and in a
// compaction after the restart, when config.toml has other prompts.
func TestPromptsAreKept(t *testing.T) {
	b := setup(t, "model_auto_compact_token_limit = 1000", native.Limits{},
		providertest.Turn{Usage: filling, Text: []string{"one"}}, providertest.Say("NOTE"), providertest.Say("two"))
	h := &host{}
	c := b.start(t, h, protocol.Config{DeveloperInstructions: new("EXPERT"), CompactPrompt: new("SUM IT UP")})
	marks := []string{"SUM IT UP", environment, "first", "second", "third", "fourth"}
	says(t, c, "first", "second")
	all := b.provider.Requests()
	inOrder(t, string(all[1].Body), "EXPERT", "first", "one", "SUM IT UP")
	diff(t, "after the compaction", []string{"system EXPERT", "user " + environment + " first second"}, roles(t, b, "EXPERT", marks...))

	path := configured(t, h).RolloutPath
	closed(t, c)
	b.reopen(t)
	b.provider.Add(providertest.Turn{Usage: filling, Text: []string{"three"}}, providertest.Say("NOTE 2"), providertest.Say("four"))
	r := b.resume(t, path, protocol.Config{}, &host{})
	says(t, r, "third", "fourth")
	all = b.provider.Requests()
	inOrder(t, string(all[3].Body), "EXPERT", "third")
	inOrder(t, string(all[4].Body), "EXPERT", "three", "SUM IT UP")
	inOrder(t, string(all[5].Body), "EXPERT", "NOTE 2")
	diff(t, "developer instructions", 1, strings.Count(string(all[5].Body), "EXPERT"))
}

// TestResumeWithOtherDeveloperInstructions checks that they are added to the history.
func TestResumeWithOtherDeveloperInstructions(t *testing.T) {
	for name, cfg := range map[string]protocol.Config{
		"argument": {DeveloperInstructions: new("OTHER")},
		"key":      {Overrides: map[string]json.RawMessage{"developer_instructions": json.RawMessage(`"OTHER"`)}},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, "", native.Limits{}, providertest.Say("one"), providertest.Say("two"))
			h := &host{}
			c := b.start(t, h, protocol.Config{DeveloperInstructions: new("EXPERT")})
			turn(t, c, say("first"))
			closed(t, c)
			says(t, b.resume(t, configured(t, h).RolloutPath, cfg, &host{}), "second")
			diff(t, "messages", []string{"system EXPERT OTHER", "user " + environment + " first", "assistant", "user second"},
				roles(t, b, "EXPERT OTHER", environment, "first", "second"))
		})
	}
}

func TestCompactPromptOfConfig(t *testing.T) {
	for config, want := range map[string]string{`compact_prompt = "CONFIGURED"`: "CONFIGURED", `compact_prompt = " "`: "grown too long"} {
		b := setup(t, "model_auto_compact_token_limit = 1000\n"+config, native.Limits{},
			providertest.Turn{Usage: filling, Text: []string{"one"}}, providertest.Say("NOTE"), providertest.Say("two"))
		c := b.start(t, &host{}, protocol.Config{})
		says(t, c, "first", "second")
		inOrder(t, b.provider.Requests()[1].LastUserText(), want)
	}
}

func TestSessionConfiguredHasThePolicies(t *testing.T) {
	b := setup(t, "", native.Limits{})
	h := &host{}
	b.start(t, h, protocol.Config{ApprovalPolicy: protocol.ApprovalNever, Effort: "low"})
	got := configured(t, h)
	diff(t, "session_configured", []string{"test", "never", "low", b.cwd}, []string{got.ModelProviderID, fmt.Sprint(got.ApprovalPolicy), fmt.Sprint(got.ReasoningEffort), got.Cwd})
}
