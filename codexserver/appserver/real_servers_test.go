//go:build realcodex

package appserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestRealLeavesItselfOut checks that Codex does not start the bridge's own program as an
// MCP server, whether its config.toml or the project's names it.
func TestRealLeavesItselfOut(t *testing.T) {
	for _, self := range []bool{false, true} {
		t.Run(fmt.Sprint(self), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			server := filepath.Join(dir, "codex-mcp")
			script := "#!/bin/sh\necho \"$1\" >> " + filepath.Join(dir, "started") + "\nexec cat\n"
			if err := os.WriteFile(server, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			r := newReal(t, "", providertest.Say("hello"), providertest.Say("again"))
			more := fmt.Sprintf("[mcp_servers.codex]\ncommand = \"env\"\nargs = [%q, \"home\"]\nstartup_timeout_sec = 2\n[projects.%q]\ntrust_level = \"trusted\"\n", server, r.cwd)
			r.initGit(t)
			if err := os.Mkdir(filepath.Join(r.cwd, ".codex"), 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(r.cwd, ".codex", "config.toml"), fmt.Sprintf("[mcp_servers.mine]\ncommand = %q\nargs = [\"project\"]\nstartup_timeout_sec = 2\n", server))
			if self {
				r.options.Self = server
			}
			r.options.Overrides = map[string]any{"mcp_servers": map[string]any{"gone": map[string]any{"enabled": false}}}
			r.configure(t, more)
			h := &recorder{}
			conv := r.start(t, h, protocol.Config{})
			if err := conv.Turn(t.Context(), text("hi")); err != nil {
				t.Fatal(err)
			}
			r.restart(t) // and in another process
			again := r.resume(t, conv, h, protocol.Config{})
			if err := again.Turn(t.Context(), text("hi")); err != nil {
				t.Fatal(err)
			}
			started, _ := os.ReadFile(filepath.Join(dir, "started"))
			for _, name := range []string{"home", "project"} {
				if strings.Contains(string(started), name) == self {
					t.Errorf("the server of the %s was started: %v", name, !self)
				}
			}
		})
	}
}

// TestRealEnvironment checks which keys in Codex's environment its commands see.
func TestRealEnvironment(t *testing.T) {
	const variables = "WEIRD_CRED HEADER_CRED ANTHROPIC_API_KEY CLAUDE_CODE_OAUTH_TOKEN OPENAI_API_KEY FOO_ONE BAR_ONE PLAIN"
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
env_http_headers = { "X-Key" = "HEADER_CRED" }`, print, report)
	h := &recorder{}
	conv := r.start(t, h, protocol.Config{FromCall: true, Overrides: raw(
		"shell_environment_policy", `{"exclude":["BAR_*"]}`, "mcp_servers", `{"nosuch":{"enabled":false}}`,
	)})
	if err := conv.Turn(t.Context(), text("go")); err != nil {
		t.Fatal(err)
	}
	seen := h.answer()
	if !strings.Contains(seen, "PLAIN=value-plain") {
		t.Fatalf("the command did not run: %s", seen)
	}
	for name := range strings.FieldsSeq(strings.TrimSuffix(variables, " PLAIN")) {
		if strings.Contains(seen, "value-"+strings.ToLower(name)) {
			t.Errorf("a command sees %s", name)
		}
	}
}

// TestRealEnvironmentOfAResumedThread checks that variables that a project's configuration
// hides from commands stay hidden when the thread is resumed.
func TestRealEnvironmentOfAResumedThread(t *testing.T) {
	for _, name := range []string{"FOO_ONE", "OPENAI_API_KEY", "PLAIN"} {
		t.Setenv(name, "value-"+strings.ToLower(name))
	}
	print := providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": "env"}))
	r := newReal(t, "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n", providertest.Say("one"), print, report)
	r.initGit(t)
	if err := os.Mkdir(filepath.Join(r.cwd, ".codex"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(r.cwd, ".codex", "config.toml"), "[shell_environment_policy]\nexclude = [\"FOO_*\"]\n")
	r.configure(t, fmt.Sprintf("\n[projects.%q]\ntrust_level = \"trusted\"\n", r.cwd))
	conv := r.start(t, &recorder{}, protocol.Config{})
	if err := conv.Turn(t.Context(), text("first")); err != nil {
		t.Fatal(err)
	}
	r.restart(t)
	h := &recorder{}
	again := r.resume(t, conv, h, protocol.Config{})
	if err := again.Turn(t.Context(), text("second")); err != nil {
		t.Fatal(err)
	}
	if seen := h.answer(); !strings.Contains(seen, "value-plain") || strings.Contains(seen, "value-foo_one") || strings.Contains(seen, "value-openai_api_key") {
		t.Errorf("a command sees %s", seen)
	}
}
