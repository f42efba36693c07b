package native_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
)

// TestCheckOwnAuthority uses a provider with a certificate of an unknown authority. It
// answers only if CODEX_CA_CERTIFICATE names the authority.
func TestCheckOwnAuthority(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ file, want string }{
		{"", "certificate"},
		{ca, ""},
		{ca + ".none", "CODEX_CA_CERTIFICATE"},
	} {
		report, err := native.Check(t.Context(), &native.Options{
			CodexHome: t.TempDir(),
			Overrides: map[string]any{"model": "m", "model_provider": "p", "model_providers.p.base_url": server.URL},
			Environ:   []string{"CODEX_CA_CERTIFICATE=" + tt.file, "PATH=" + os.Getenv("PATH")},
		})
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = report.Reach
		}
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("with the file %q: %q, want %q", tt.file, got, tt.want)
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
