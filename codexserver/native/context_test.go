package native_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// repository makes a folder a repository without commits.
func repository(t testing.TB, dir string) {
	t.Helper()
	write(t, filepath.Join(dir, ".git", "HEAD"), "ref: refs/heads/main\n")
	for _, name := range []string{"objects", "refs"} {
		if err := os.Mkdir(filepath.Join(dir, ".git", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// userMessages are the texts of the user's messages in a chat request. Neighbours are one message there:
// the rules of files, the environment and what the user wrote are apart here.
func userMessages(t testing.TB, r providertest.Request) []string {
	t.Helper()
	var body struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	parse(t, r.Body, &body)
	var out []string
	for _, m := range body.Messages {
		var text string
		if m.Role == "user" && json.Unmarshal(m.Content, &text) == nil {
			for _, end := range []string{"</user_instructions>", "</environment_context>"} {
				text = strings.ReplaceAll(text, end+"\n\n", end+"\x00")
			}
			out = append(out, strings.Split(text, "\x00")...)
		}
	}
	return out
}

func TestFirstMessages(t *testing.T) {
	b := setup(t, "project_doc_max_bytes = 30", native.Limits{}, providertest.Say("ok"), providertest.Say("ok"))
	write(t, filepath.Join(b.home, "AGENTS.md"), "be kind\n")
	repository(t, b.cwd)
	write(t, filepath.Join(b.cwd, "AGENTS.md"), "root rule\n")
	write(t, filepath.Join(b.cwd, "sub", "AGENTS.md"), "a rule that is too long to be kept\n")
	root := b.cwd
	b.cwd = filepath.Join(root, "sub")
	h := &host{}
	c := b.start(t, h, protocol.Config{})
	path := configured(t, h).RolloutPath
	turn(t, c, say("hi"))
	if agent := b.provider.Requests()[0].Header.Get("User-Agent"); !strings.HasPrefix(agent, "codex-mcp/dev (") {
		t.Errorf("the user agent is %q", agent)
	}
	environment := "<environment_context>\n  <cwd>" + b.cwd + "</cwd>\n  <approval_policy>untrusted</approval_policy>\n" +
		"  <sandbox_mode>danger-full-access</sandbox_mode>\n  <network_access>enabled</network_access>\n  <shell>bash</shell>\n</environment_context>"
	want := []string{
		"<user_instructions>\n\nbe kind\n\n--- project-doc ---\n\nroot rule\n\na rule that is too lo\n\n</user_instructions>",
		environment, "hi",
	}
	diff(t, "messages", want, userMessages(t, b.provider.Requests()[0]))
	if events := h.take(); events[1] != "background_event" {
		t.Errorf("no warning of the cut file: %q", events)
	}

	// A later process sends only changes.
	closed(t, c)
	b.reopen(t)
	c = b.resume(t, path, protocol.Config{
		ApprovalPolicy: protocol.ApprovalNever, Sandbox: protocol.SandboxWorkspaceWrite,
		Overrides: map[string]json.RawMessage{"sandbox_workspace_write.writable_roots": json.RawMessage(fmt.Sprintf("[%q]", root))},
	}, &host{})
	turn(t, c, say("now write"))
	changed := "<environment_context>\n  <approval_policy>never</approval_policy>\n  <sandbox_mode>workspace-write</sandbox_mode>\n" +
		"  <network_access>restricted</network_access>\n  <writable_roots>\n    <root>" + root + "</root>\n  </writable_roots>\n</environment_context>"
	diff(t, "messages", append(want, changed, "now write"), userMessages(t, b.provider.Requests()[1]))
}

// TestRulesOfAFolder checks which file has the rules of a folder, as measured with Codex 0.169.0:
// in a project the first that exists, even without text; in $CODEX_HOME the first with text.
func TestRulesOfAFolder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string // "" is no message with rules
	}{
		{"an override in each folder", map[string]string{
			"home/AGENTS.md": "own", "home/AGENTS.override.md": "own override", "AGENTS.md": "root", "AGENTS.override.md": "root override", "sub/AGENTS.md": "sub",
		}, "own override\n\n--- project-doc ---\n\nroot override\n\nsub"},
		{"overrides alone", map[string]string{"home/AGENTS.override.md": "own override", "sub/AGENTS.override.md": "sub override"},
			"own override\n\n--- project-doc ---\n\nsub override"},
		{"overrides without text", map[string]string{"home/AGENTS.md": "own", "home/AGENTS.override.md": " \n", "AGENTS.md": "root", "AGENTS.override.md": " \n"}, "own"},
		{"an override and another name", map[string]string{"AGENTS.override.md": "root override", "RULES.md": "root"}, "root override"},
		{"another name", map[string]string{"RULES.md": "root"}, "root"},
		{"an empty file and another name", map[string]string{"AGENTS.md": "", "RULES.md": "root"}, ""},
		{"a folder in place of the override", map[string]string{"AGENTS.md": "root", "AGENTS.override.md/file": ""}, "root"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, `project_doc_fallback_filenames = ["RULES.md"]`, native.Limits{}, providertest.Say("ok"))
			repository(t, b.cwd)
			for name, text := range tt.files {
				path := filepath.Join(b.cwd, name)
				if own, ok := strings.CutPrefix(name, "home/"); ok {
					path = filepath.Join(b.home, own)
				}
				write(t, path, text)
			}
			b.cwd = filepath.Join(b.cwd, "sub")
			if err := os.MkdirAll(b.cwd, 0o755); err != nil {
				t.Fatal(err)
			}
			turn(t, b.start(t, &host{}, protocol.Config{}), say("hi"))
			got := ""
			if first := userMessages(t, b.provider.Requests()[0])[0]; strings.HasPrefix(first, "<user_instructions>") {
				got = strings.TrimSuffix(strings.TrimPrefix(first, "<user_instructions>\n\n"), "\n\n</user_instructions>")
			}
			diff(t, "rules", tt.want, got)
		})
	}
}

func TestRolloutIsComplete(t *testing.T) {
	b := setup(t, "", native.Limits{}, providertest.Call(providertest.Shell("c1", "echo", "x")), providertest.Say("ok"))
	h := &host{}
	turn(t, b.start(t, h, protocol.Config{}), say("hi"))
	path := configured(t, h).RolloutPath
	data := read(t, path)
	var kinds []string
	for line := range strings.Lines(data) {
		var l protocol.RolloutLine
		parse(t, []byte(line), &l)
		var p struct{ Type, Role string }
		parse(t, l.Payload, &p)
		kinds = append(kinds, strings.TrimSpace(string(l.Type)+" "+p.Type+" "+p.Role))
	}
	diff(t, "lines", []string{
		"session_meta", "response_item message user", "event_msg task_started", "response_item message user", "event_msg user_message",
		"turn_context", "response_item function_call", "response_item function_call_output", "event_msg token_count",
		"turn_context", "response_item message assistant", "event_msg agent_message", "event_msg token_count", "event_msg task_complete",
	}, kinds)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
