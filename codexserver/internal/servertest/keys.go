package servertest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// KeyVariables are the names of variables with keys that no command may have: by the names of their services, and as
// [KeysConfig] names them.
var KeyVariables = []string{
	"OPENAI_API_KEY", "CODEX_API_KEY", "ANTHROPIC_API_KEY", "AZURE_OPENAI_API_KEY",
	"FIRST_CRED", "FIRST_HEADER", "SECOND_CRED", "SECOND_HEADER", "SERVER_CRED", "SERVER_HEADER", "EXCLUDED_CRED",
}

// KeysConfig is the end of a configuration of Codex that names the others.
const KeysConfig = `
[shell_environment_policy]
exclude = ["EXCLUDED*"]
[model_providers.first]
name = "first"
base_url = "http://127.0.0.1:9/v1"
env_key = "FIRST_CRED"
env_http_headers = { "x-first" = "FIRST_HEADER" }
[model_providers.second]
name = "second"
base_url = "http://127.0.0.1:9/v1"
env_key = "SECOND_CRED"
env_http_headers = { "x-second" = "SECOND_HEADER" }
[mcp_servers.off]
url = "http://127.0.0.1:9/mcp"
enabled = false
bearer_token_env_var = "SERVER_CRED"
env_http_headers = { "x-server" = "SERVER_HEADER" }
`

// Environ reads what env -0 has written, without what the shell sets for itself.
func Environ(t testing.TB, file string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for entry := range strings.SplitSeq(string(must.Get(os.ReadFile(file))(t)), "\x00") {
		if name, value, ok := strings.Cut(entry, "="); ok &&
			!slices.Contains([]string{"_", "SHLVL", "PWD", "OLDPWD"}, name) {
			all[name] = value
		}
	}
	return all
}

// NoKeys fails for an environment with one of [KeyVariables], or with its value.
func NoKeys(t testing.TB, environ map[string]string) {
	t.Helper()
	for name, value := range environ {
		if slices.Contains(KeyVariables, name) || strings.HasPrefix(value, "sk-") {
			t.Errorf("a command has %s=%s", name, value)
		}
	}
}
