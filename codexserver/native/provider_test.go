package native_test

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestOwnAuthority uses a provider with a certificate of an unknown authority: it works only
// if CODEX_CA_CERTIFICATE names the authority.
func TestOwnAuthority(t *testing.T) {
	script := providertest.New(providertest.Say("hello"))
	defer script.Close()
	server := httptest.NewUnstartedServer(script)
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		environ []string
		err     string
	}{
		{"unknown", []string{}, "certificate"},
		{"named", []string{"CODEX_CA_CERTIFICATE=" + ca}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := native.New(&native.Options{CodexHome: dir, Environ: tt.environ, Overrides: map[string]any{
				"model_provider": "own",
				"model_providers": map[string]any{"own": map[string]any{
					"base_url": server.URL + "/v1", "request_max_retries": 0, "stream_max_retries": 0,
				}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			c, err := e.Start(t.Context(), protocol.Config{Cwd: dir}, &host{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			err = c.Turn(t.Context(), say("hi"))
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("Turn: %v, want %q", err, tt.err)
			}
		})
	}
	if _, err := native.New(&native.Options{CodexHome: dir, Environ: []string{"CODEX_CA_CERTIFICATE=" + filepath.Join(dir, "none")}}); err == nil {
		t.Error("a missing file was accepted")
	}
}
