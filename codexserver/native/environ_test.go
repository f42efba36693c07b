package native_test

import (
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestCommandsSeeNoKeys checks that commands do not see a variable that holds a key, whatever
// its name and the environment's policy.
func TestCommandsSeeNoKeys(t *testing.T) {
	secrets := []string{"WEIRD_CRED", "HEADER_CRED", "OTHER_CRED", "SERVER_CRED", "SERVER_HEADER", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}
	environ := []string{"PATH=" + os.Getenv("PATH"), "SHELL=/bin/bash", "PLAIN=value-plain", "LOUD_KEY=value-loud"}
	for _, name := range secrets {
		environ = append(environ, name+"=value-"+strings.ToLower(name))
	}
	b := setup(t, `
---
env_key = "WEIRD_CRED"
env_http_headers = { "api-key" = "HEADER_CRED" }
[model_providers.other]
base_url = "http://localhost:1"
env_key = "OTHER_CRED"
[mcp_servers.remote]
url = "http://localhost:1"
bearer_token_env_var = "SERVER_CRED"
env_http_headers = { "api-key" = "SERVER_HEADER" }
[shell_environment_policy]
ignore_default_excludes = true
`, native.Limits{},
		providertest.Call(providertest.Shell("c1", "env")),
		providertest.Turn{Func: func(r providertest.Request) providertest.Turn { return providertest.Say(r.LastToolOutput()) }})
	e, err := native.New(&native.Options{CodexHome: b.home, Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	b.engine = e
	t.Cleanup(func() { _ = e.Close() })
	h := &host{exec: allow}
	turn(t, b.start(t, h, protocol.Config{}), say("go"))
	seen := strings.Join(h.take(), "\n")
	for _, name := range []string{"value-plain", "value-loud"} {
		if !strings.Contains(seen, name) {
			t.Errorf("a command does not see %s: %s", name, seen)
		}
	}
	for _, name := range secrets {
		if strings.Contains(seen, "value-"+strings.ToLower(name)) {
			t.Errorf("a command sees %s", name)
		}
	}
}
