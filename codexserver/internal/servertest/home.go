package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// CodexHome returns a home of Codex with these lines of its configuration, and the model of a
// provider at a URL. $HOME is another folder, because commands would run the real one's profile.
func CodexHome(t testing.TB, url, configuration string) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	must.OK(t, os.WriteFile(filepath.Join(home, "config.toml"), []byte(CodexConfig(url, configuration)), 0o600))
	return home
}

// CodexConfig returns a config.toml with these lines, and the model of a provider at a URL, which is asked once.
func CodexConfig(url, configuration string) string {
	return fmt.Sprintf(`
model = "mock-model"
model_provider = "mock"
%s
[model_providers.mock]
name = "mock"
base_url = %q
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`, configuration, url)
}
