package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSharedLogIsBounded writes a line to logs that are almost full, and full.
func TestSharedLogIsBounded(t *testing.T) {
	const most = 4 << 20
	for size, kept := range map[int]int{most - 1: most + 4, most: 5} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := (&sharedLog{f: f, path: path}).Write([]byte("line\n")); err != nil {
			t.Error(err)
		}
		text, err := os.ReadFile(path)
		if err != nil || len(text) != kept || !strings.HasSuffix(string(text), "line\n") {
			t.Errorf("after %d bytes the log has %d, %v", size, len(text), err)
		}
		if info, err := os.Stat(path + ".1"); (err == nil) != (kept == 5) || err == nil && info.Size() != most {
			t.Errorf("after %d bytes the earlier log: %v", size, err)
		}
	}
}

// TestTraits checks what makes another shared server.
func TestTraits(t *testing.T) {
	home := t.TempDir()
	t.Setenv("NAMED_KEY", "1")
	t.Setenv("OPENAI_API_KEY", "2")
	t.Setenv("OTHER", "3")
	for name, text := range map[string]string{"config.toml": "[model_providers.x]\nenv_key = \"NAMED_KEY\"\nname = \"OTHER\"", "codex-mcp.toml": "shared = true"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
	if err := os.WriteFile(filepath.Join(home, "codex-mcp.toml"), []byte("shared = false"), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := c.traits(&options{engine: "codex"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"NAMED_KEY", "SSL_CERT_FILE", "codex-mcp.toml", "the flags"}, differences(of, sums(other))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
