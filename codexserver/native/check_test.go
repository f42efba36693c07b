package native_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestOwnAuthority uses a provider with a certificate of an unknown authority. A report and a turn
// reach it only if CODEX_CA_CERTIFICATE names the authority.
func TestOwnAuthority(t *testing.T) {
	script := providertest.New(providertest.Say("hello"))
	defer script.Close()
	server := httptest.NewUnstartedServer(script)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	write(t, ca, string(cert))
	for _, tt := range []struct{ file, want string }{
		{"", "certificate"},
		{ca, ""},
		{ca + ".none", "CODEX_CA_CERTIFICATE"},
	} {
		o := native.Options{
			CodexHome: t.TempDir(),
			Overrides: map[string]any{"model": "m", "model_provider": "p", "model_providers.p": map[string]any{
				"base_url": server.URL + "/v1", "request_max_retries": 0, "stream_max_retries": 0,
			}},
			Environ: []string{"CODEX_CA_CERTIFICATE=" + tt.file, "PATH=" + os.Getenv("PATH")},
		}
		said := map[string]string{} // at each door
		if report, err := native.Check(t.Context(), &o); err != nil {
			said["Check"] = err.Error()
		} else {
			said["Check"] = report.Reach
		}
		if e, err := native.New(&o); err != nil {
			said["New"] = err.Error()
		} else {
			defer e.Close()
			err := (&bench{engine: e, cwd: t.TempDir()}).start(t, &host{}, protocol.Config{}).Turn(t.Context(), say("hi"))
			said["Turn"] = strings.TrimSuffix(fmt.Sprint(err), "<nil>")
		}
		for door, got := range said {
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%s with the file %q: %q, want %q", door, tt.file, got, tt.want)
			}
		}
	}
}

// TestCheckShowsNoSecret has addresses with secrets in them, of which no report may show any.
func TestCheckShowsNoSecret(t *testing.T) {
	for _, address := range []string{
		"http://user:hunter2@127.0.0.1:1/v1", "http://127.0.0.1:1/v1?key=hunter2", "http://user:hunter2%zz@127.0.0.1:1/v1",
		"http://user:hunter2@127.0.0.1:port/v1", "http://user:hunter2@[::1/v1", "http://127.0.0.1:1/v1#hunter2",
	} {
		report, err := native.Check(t.Context(), &native.Options{
			CodexHome: t.TempDir(), Overrides: map[string]any{"model": "m", "model_provider": "p", "model_providers.p.base_url": address},
		})
		if text := fmt.Sprintf("%+v %v", report, err); strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", address, text)
		}
		if err == nil && report.Reach == "" {
			t.Errorf("%s is said to answer", address)
		}
	}
}

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
	b.engine = open(t, native.Options{CodexHome: b.home, Environ: environ})
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
