package main

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTraits checks what makes another shared server.
func TestTraits(t *testing.T) {
	home := t.TempDir()
	t.Setenv("NAMED_KEY", "1")
	t.Setenv("OPENAI_API_KEY", "2")
	t.Setenv("OTHER", "3")
	for name, text := range map[string]string{"config.toml": "[model_providers.x]\nenv_key = \"NAMED_KEY\"\nname = \"OTHER\"", "codex-mcp.toml": "shared = true"} {
		write(t, filepath.Join(home, name), text)
	}
	c := &configuration{home: home}
	own, err := c.traits(&options{engine: "native"})
	if err != nil {
		t.Skip(err)
	}
	of := sums(own)
	if of["NAMED_KEY"] == "" || of["OPENAI_API_KEY"] == "" || of["OTHER"] != "" {
		t.Errorf("%q", of)
	}
	t.Setenv("NAMED_KEY", "4")
	t.Setenv("SSL_CERT_FILE", "/ca.pem")
	write(t, filepath.Join(home, "codex-mcp.toml"), "shared = false")
	other, err := c.traits(&options{engine: "codex"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"NAMED_KEY", "SSL_CERT_FILE", "codex-mcp.toml", "the flags"}, differences(of, sums(other))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
