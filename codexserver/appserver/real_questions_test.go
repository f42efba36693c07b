//go:build realcodex

package appserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealQuestions causes each kind of question that today's Codex asks besides those about a
// command or a patch. Each is asked, or refused by name. TestRealApprovals has those about the
// tools of MCP servers, TestRealNetwork those about a host, TestRealRules those that an administrator
// wants a person to decide.
//
// The others were not caused. Item/tool/call, attestation/generate, currentTime/read and
// account/chatgptAuthTokens/refresh come only to a client that has declared them, which the bridge
// has not. No supported version sends execCommandApproval and applyPatchApproval. A second environment
// needs an exec-server.
func TestRealQuestions(t *testing.T) {
	t.Parallel()
	needs(t, newQuestions)
	call := func(id, tool string, arguments map[string]any) providertest.Turn {
		return providertest.Call(providertest.Tool(id, tool, arguments))
	}
	touch := map[string]any{"cmd": "touch made.txt"}
	shell := map[string]any{"cmd": "sh", "tty": true, "yield_time_ms": 500, "sandbox_permissions": "require_escalated", "justification": "to type"}
	input := providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
		_, session, _ := strings.Cut(r.LastToolOutput(), "session ID ")
		var n int
		if _, err := fmt.Sscan(session, &n); err != nil {
			return providertest.Say(err.Error())
		}
		return call("c2", "write_stdin", map[string]any{"session_id": n, "chars": "touch made.txt; echo do''ne; exit\n", "yield_time_ms": 10000})
	}}
	for _, test := range []struct {
		name    string
		turns   func(cwd string) []providertest.Turn
		decides elicit.Decision
		asked   string // a part of the last question
		made    bool
		answer  string // a part of it
		refused string // a part of the event that says so
	}{
		{"permissions", func(cwd string) []providertest.Turn {
			return []providertest.Turn{call("c1", "request_permissions", map[string]any{"reason": "to write", "permissions": map[string]any{"file_system": map[string]any{"write": []string{cwd}}}}), call("c2", "exec_command", touch)}
		}, elicit.Approved, "further-permissions", true, "exited with code 0", ""},
		{"permissions denied", func(cwd string) []providertest.Turn {
			return []providertest.Turn{call("c1", "request_permissions", map[string]any{"reason": "to write", "permissions": map[string]any{"file_system": map[string]any{"write": []string{cwd}}}}), call("c2", "exec_command", touch)}
		}, elicit.Denied, "further-permissions", false, "Read-only file system", ""},
		{"input", func(string) []providertest.Turn { return []providertest.Turn{call("c1", "exec_command", shell), input} },
			elicit.Approved, "input for a command that is running", true, "done", ""},
		{"input denied", func(string) []providertest.Turn { return []providertest.Turn{call("c1", "exec_command", shell), input} },
			elicit.Denied, "input for a command that is running", false, "rejected", ""},
		{"a command with further permissions", func(cwd string) []providertest.Turn {
			return []providertest.Turn{call("c1", "exec_command", map[string]any{"cmd": "touch made.txt", "sandbox_permissions": "with_additional_permissions", "justification": "to write",
				"additional_permissions": map[string]any{"file_system": map[string]any{"write": []string{cwd}}}})}
		}, elicit.Approved, "", false, "rejected", "item/commandExecution/requestApproval of Codex: it asks for further permissions"},
		{"a question of the model", func(string) []providertest.Turn {
			return []providertest.Turn{call("c1", "request_user_input", map[string]any{"questions": []any{map[string]any{"id": "colour", "header": "Colour", "question": "Which colour?",
				"options": []any{map[string]any{"label": "red", "description": "warm"}, map[string]any{"label": "blue", "description": "cold"}}}}})}
		}, elicit.Approved, "Which colour?", false, `"answers":["red"]`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newReal(t, "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"\n[features]\nrequest_permissions_tool = true\nexec_permission_approvals = true\ndefault_mode_request_user_input = true")
			for _, turn := range append(test.turns(r.cwd), report) {
				r.Add(turn)
			}
			var log bytes.Buffer
			r.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
			r.restart(t)
			var asked []string
			h := &recorder{
				exec: func(_ context.Context, q approval.Command) elicit.Outcome {
					asked = append(asked, q.Reason)
					if q.Reason == "to type" {
						return elicit.Outcome{Decision: elicit.Approved} // so that there is a command to type into
					}
					return elicit.Outcome{Decision: test.decides}
				},
				approve: func(_ context.Context, q *elicit.Question) elicit.Outcome {
					asked = append(asked, q.Message)
					return elicit.Outcome{Decision: test.decides}
				},
				elicit: func(_ context.Context, form json.RawMessage) (json.RawMessage, error) {
					asked = append(asked, string(form))
					return json.RawMessage(`{"action":"accept","content":{"colour":"red"}}`), nil
				},
			}
			must.OK(t, r.start(t, h, protocol.Config{}).Turn(t.Context(), text("go")))
			last := ""
			if len(asked) > 0 {
				last = asked[len(asked)-1]
			}
			if !strings.Contains(last, test.asked) || (last == "") != (test.asked == "") {
				t.Errorf("asked %q", asked)
			}
			if strings.HasPrefix(test.name, "permissions") && !strings.Contains(last, filepath.Base(r.cwd)) {
				t.Errorf("the question does not show the folder: %q", last)
			}
			if made(r) != test.made || !strings.Contains(h.answer(), test.answer) {
				t.Errorf("made %t, answer %q, events %v", made(r), h.answer(), h.types())
			}
			refused := ""
			for _, m := range h.all() {
				if e, ok := m.(protocol.BackgroundEvent); ok && e.Refused != nil {
					refused += e.Message
				}
			}
			if !strings.Contains(refused, test.refused) || (refused == "") != (test.refused == "") {
				t.Errorf("refused %q; %s", refused, &log)
			}
		})
	}
}

// TestRealLeavesItselfOut checks that Codex does not start the bridge's own program as an
// MCP server, whether its config.toml or the project's names it.
func TestRealLeavesItselfOut(t *testing.T) {
	t.Parallel()
	for _, self := range []bool{false, true} {
		t.Run(fmt.Sprint(self), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			server := filepath.Join(dir, "codex-mcp")
			script := "#!/bin/sh\necho \"$1\" >> " + filepath.Join(dir, "started") + "\nexec cat\n"
			must.OK(t, testenv.WriteProgram(server, []byte(script)))
			r := newReal(t, "", providertest.Say("hello"), providertest.Say("again"))
			more := fmt.Sprintf("[mcp_servers.codex]\ncommand = \"env\"\nargs = [%q, \"home\"]\nstartup_timeout_sec = 2\n[projects.%q]\ntrust_level = \"trusted\"\n", server, r.cwd)
			r.initGit(t)
			must.OK(t, os.Mkdir(filepath.Join(r.cwd, ".codex"), 0o700))
			writeFile(t, filepath.Join(r.cwd, ".codex", "config.toml"), fmt.Sprintf("[mcp_servers.mine]\ncommand = %q\nargs = [\"project\"]\nstartup_timeout_sec = 2\n", server))
			if self {
				r.options.Self = server
			}
			r.options.Overrides = map[string]any{"mcp_servers": map[string]any{"gone": map[string]any{"enabled": false}}}
			r.configure(t, more)
			h := &recorder{}
			conv := r.start(t, h, protocol.Config{})
			must.OK(t, conv.Turn(t.Context(), text("hi")))
			r.restart(t) // and in another process
			again := r.resume(t, conv, h, protocol.Config{})
			must.OK(t, again.Turn(t.Context(), text("hi")))
			started, _ := os.ReadFile(filepath.Join(dir, "started"))
			for _, name := range []string{"home", "project"} {
				if strings.Contains(string(started), name) == self {
					t.Errorf("the server of the %s was started: %v", name, !self)
				}
			}
		})
	}
}

// TestRealSearches has the working folder in the PATH. Codex starts no program from there.
func TestRealSearches(t *testing.T) {
	r := newReal(t, "", report)
	r.initGit(t)
	marks := filepath.Join(t.TempDir(), "marks")
	boxtest.Lay(t, r.cwd, "git=#!/bin/sh\necho git $* >> "+marks)
	t.Setenv("PATH", r.cwd+string(filepath.ListSeparator)+os.Getenv("PATH"))
	must.OK(t, r.start(t, &recorder{}, protocol.Config{}).Turn(t.Context(), text("go")))
	if started, _ := os.ReadFile(marks); len(started) > 0 {
		t.Errorf("Codex started %s", started)
	}
}

// TestRealEnvironment checks which keys in Codex's environment its commands see, also after a restart: neither those of the
// configuration of the user and the project, nor those that Codex needs itself.
func TestRealEnvironment(t *testing.T) {
	const variables = "WEIRD_CRED HEADER_CRED ANTHROPIC_API_KEY CLAUDE_CODE_OAUTH_TOKEN OPENAI_API_KEY FOO_ONE BAZ_ONE PLAIN"
	for name := range strings.FieldsSeq(variables) {
		t.Setenv(name, "value-"+strings.ToLower(name))
	}
	print := providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": "env"}))
	r := newReal(t, `
approval_policy = "never"
sandbox_mode = "danger-full-access"
[shell_environment_policy]
ignore_default_excludes = true
exclude = ["FOO_*"]
[model_providers.other]
name = "other"
base_url = "http://127.0.0.1:9/v1"
env_key = "WEIRD_CRED"
env_http_headers = { "X-Key" = "HEADER_CRED" }`, print, report, print, report)
	r.initGit(t)
	must.OK(t, os.Mkdir(filepath.Join(r.cwd, ".codex"), 0o700))
	writeFile(t, filepath.Join(r.cwd, ".codex", "config.toml"), "[shell_environment_policy]\nexclude = [\"FOO_*\", \"BAZ_*\"]\n")
	r.configure(t, fmt.Sprintf("\n[projects.%q]\ntrust_level = \"trusted\"\n", r.cwd))
	h := &recorder{}
	cfg := protocol.Config{FromCall: true, Overrides: raw("mcp_servers", `{"nosuch":{"enabled":false}}`)}
	conv := r.start(t, h, cfg)
	check := func() {
		t.Helper()
		must.OK(t, conv.Turn(t.Context(), text("go")))
		seen := h.answer()
		for name := range strings.FieldsSeq(variables) {
			must.Equal(t, fmt.Sprintf("a command sees, or lacks, %s: %s", name, seen), name == "PLAIN", strings.Contains(seen, "value-"+strings.ToLower(name)))
		}
	}
	check()
	r.restart(t)
	h = &recorder{}
	conv = r.resume(t, conv, h, cfg)
	check()
}
