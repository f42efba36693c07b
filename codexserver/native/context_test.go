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
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// repository makes a folder a repository without commits.
func repository(t testing.TB, dir string) {
	t.Helper()
	write(t, filepath.Join(dir, ".git", "HEAD"), "ref: refs/heads/main\n")
	for _, name := range []string{"objects", "refs"} {
		must.OK(t, os.Mkdir(filepath.Join(dir, ".git", name), 0o755))
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.OK(t, os.WriteFile(path, []byte(text), 0o644))
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
	must.Equal(t, "messages", want, userMessages(t, b.provider.Requests()[0]))
	if events := h.take(); events[1] != "background_event" {
		t.Errorf("no warning of the cut file: %q", events)
	}

	// A later process sends only changes.
	closed(t, c)
	b.reopen(t)
	c = b.resume(t, path, protocol.Config{
		ApprovalPolicy: protocol.ApprovalNever, Sandbox: protocol.SandboxWorkspaceWrite,
		Overrides: protocol.Overrides{"sandbox_workspace_write.writable_roots": []any{root}},
	}, &host{})
	turn(t, c, say("now write"))
	changed := "<environment_context>\n  <approval_policy>never</approval_policy>\n  <sandbox_mode>workspace-write</sandbox_mode>\n" +
		"  <network_access>restricted</network_access>\n  <writable_roots>\n    <root>" + root + "</root>\n  </writable_roots>\n</environment_context>"
	must.Equal(t, "messages", append(want, changed, "now write"), userMessages(t, b.provider.Requests()[1]))
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
			must.OK(t, os.MkdirAll(b.cwd, 0o755))
			turn(t, b.start(t, &host{}, protocol.Config{}), say("hi"))
			got := ""
			if first := userMessages(t, b.provider.Requests()[0])[0]; strings.HasPrefix(first, "<user_instructions>") {
				got = strings.TrimSuffix(strings.TrimPrefix(first, "<user_instructions>\n\n"), "\n\n</user_instructions>")
			}
			must.Equal(t, "rules", tt.want, got)
		})
	}
}

// TestRootOfAProject checks from which folder on rules are looked for, as measured with Codex 0.171.0.
func TestRootOfAProject(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, config string
		marks        []string // files; one that ends in .git is a repository
		want         string
	}{
		{"no key, no repository", "", []string{".proj"}, "deep"},
		{"no key, a repository", "", []string{".git"}, "root mid deep"},
		{"a file", `[".proj"]`, []string{".proj"}, "root mid deep"},
		{"a folder", `[".hg"]`, []string{".hg/store"}, "root mid deep"},
		{"the nearest", `[".proj"]`, []string{".proj", "a/.proj"}, "mid deep"},
		{"the nearest of two", `[".x", ".proj"]`, []string{".x", "a/.proj"}, "mid deep"},
		{"in the folder itself", `[".proj"]`, []string{".proj", "a/b/.proj"}, "deep"},
		{"a repository is none", `[".proj"]`, []string{".git"}, "deep"},
		{"a repository among them", `[".git", ".proj"]`, []string{".proj", "a/.git"}, "mid deep"},
		{"none", `[]`, []string{".git", ".proj"}, "deep"},
		{"a path", `["c/d"]`, []string{"c/d"}, "root mid deep"},
		{"no pattern", `["*.proj"]`, []string{"x.proj"}, "deep"},
		{"a blank", `[""]`, nil, "deep"},
		{"another folder's", `["../AGENTS.md"]`, nil, "deep"},
		{"above", `[".proj"]`, nil, "deep"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := ""
			if tt.config != "" {
				config = "project_root_markers = " + tt.config
			}
			b := setup(t, config, native.Limits{}, providertest.Say("ok"))
			for folder, rule := range map[string]string{"": "root", "a": "mid", "a/b": "deep"} {
				write(t, filepath.Join(b.cwd, folder, "AGENTS.md"), rule)
			}
			for _, name := range tt.marks {
				if folder, ok := strings.CutSuffix(name, ".git"); ok {
					repository(t, filepath.Join(b.cwd, folder))
				} else {
					write(t, filepath.Join(b.cwd, name), "")
				}
			}
			b.cwd = filepath.Join(b.cwd, "a", "b")
			turn(t, b.start(t, &host{}, protocol.Config{}), say("hi"))
			must.Equal(t, "rules", "<user_instructions>\n\n"+strings.ReplaceAll(tt.want, " ", "\n\n")+"\n\n</user_instructions>", userMessages(t, b.provider.Requests()[0])[0])
		})
	}
}

// TestLinksOfAProject checks that the rules of a repository are no link out of it, also in a larger project.
func TestLinksOfAProject(t *testing.T) {
	testenv.NeedsLinks(t)
	b := setup(t, `project_root_markers = [".proj"]`, native.Limits{}, providertest.Say("ok"))
	write(t, filepath.Join(b.cwd, ".proj"), "")
	write(t, filepath.Join(b.cwd, "common.md"), "shared")
	repository(t, filepath.Join(b.cwd, "a"))
	must.OK(t, os.Symlink("common.md", filepath.Join(b.cwd, "AGENTS.md")))
	must.OK(t, os.Symlink("../common.md", filepath.Join(b.cwd, "a", "AGENTS.md")))
	b.cwd = filepath.Join(b.cwd, "a")
	h := &host{}
	turn(t, b.start(t, h, protocol.Config{}), say("hi"))
	must.Equal(t, "rules", "<user_instructions>\n\nshared\n\n</user_instructions>", userMessages(t, b.provider.Requests()[0])[0])
	if warning := strings.Join(h.news(), ""); !strings.Contains(warning, "leads out of "+b.cwd) {
		t.Errorf("warning %q", warning)
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
	must.Equal(t, "lines", []string{
		"session_meta", "response_item message user", "event_msg task_started", "response_item message user", "event_msg user_message",
		"turn_context", "response_item function_call", "response_item function_call_output", "event_msg token_count",
		"turn_context", "response_item message assistant", "event_msg agent_message", "event_msg token_count", "event_msg task_complete",
	}, kinds)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

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

// TestPromptsAreKept checks both prompts after a compaction, after a restart, and in a
// compaction after the restart, when config.toml has other prompts.
func TestPromptsAreKept(t *testing.T) {
	b := setup(t, "model_auto_compact_token_limit = 1000", native.Limits{},
		providertest.Turn{Usage: filling, Text: []string{"one"}}, providertest.Say("NOTE"), providertest.Say("two"))
	h := &host{}
	c := b.start(t, h, protocol.Config{Choices: protocol.Choices{DeveloperInstructions: new("EXPERT"), CompactPrompt: new("SUM IT UP")}})
	marks := []string{"SUM IT UP", environment, "first", "second", "third", "fourth"}
	says(t, c, "first", "second")
	all := b.provider.Requests()
	inOrder(t, string(all[1].Body), "EXPERT", "first", "one", "SUM IT UP")
	must.Equal(t, "after the compaction", []string{"system EXPERT", "user " + environment + " first second"}, roles(t, b, "EXPERT", marks...))

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
	must.Equal(t, "developer instructions", 1, strings.Count(string(all[5].Body), "EXPERT"))
}

func TestSessionConfiguredHasThePolicies(t *testing.T) {
	b := setup(t, "", native.Limits{})
	h := &host{}
	b.start(t, h, protocol.Config{ApprovalPolicy: protocol.ApprovalNever, Choices: protocol.Choices{Effort: "low"}})
	got := configured(t, h)
	must.Equal(t, "session_configured", []string{"test", "never", "low", b.cwd}, []string{got.ModelProviderID, fmt.Sprint(got.ApprovalPolicy), fmt.Sprint(got.ReasoningEffort), got.Cwd})
}
