package servertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// afterHandshake answers the first request of MCP, and ends.
const afterHandshake = `IFS= read -r asks; id=$(printf %s "$asks" | sed 's/.*"id":\([^,}]*\).*/\1/'); ` +
	`printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},' "$id"; ` +
	`printf '"serverInfo":{"name":"x","version":"1"}}}\n'; ` +
	`IFS= read -r noted; exit 3`

// BrokenServers returns tables of config.toml with MCP servers that do not start, each in another way, and their names,
// sorted.
func BrokenServers(t testing.TB) (tables string, names []string) {
	t.Helper()
	testenv.NeedsUnix(t, "sh")
	file := filepath.Join(t.TempDir(), "no-program")
	must.OK(t, os.WriteFile(file, []byte("#!/bin/sh\n"), 0o644))
	answers := func(status int, kind, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return fmt.Sprintf("url = %q", s.URL)
	}
	var b strings.Builder
	for _, one := range []struct{ name, keys string }{
		{"a-no-such-program", `command = "no_such_program_here"`},
		{"b-no-program", fmt.Sprintf("command = %q", file)},
		{"c-ends", "command = \"/bin/sh\"\nargs = [\"-c\", \"exit 3\"]"},
		{"d-says-hello", "command = \"/bin/echo\"\nargs = [\"hello\"]"},
		{"e-says-nothing", "command = \"sleep\"\nargs = [\"600\"]\nstartup_timeout_sec = 0.5"},
		{"f-ends-later", fmt.Sprintf("command = \"/bin/sh\"\nargs = [\"-c\", '''%s''']", afterHandshake)},
		{"g-no-such-folder", "command = \"sleep\"\nargs = [\"600\"]\ncwd = \"/no/such/folder\""},
		{"h-nobody-listens", fmt.Sprintf("url = \"http://%s/mcp\"", testenv.Nobody(t))},
		{"i-not-found", answers(http.StatusNotFound, "text/plain", "nothing here")},
		{"j-a-page", answers(http.StatusOK, "text/html", "<title>Hotel</title>")},
		{"k-wants-a-login", answers(http.StatusUnauthorized, "text/plain", "who are you?")},
	} {
		fmt.Fprintf(&b, "[mcp_servers.%s]\n%s\n", one.name, one.keys)
		names = append(names, one.name)
	}
	return b.String(), names
}
