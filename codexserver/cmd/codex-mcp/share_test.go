package main

import (
	"path/filepath"
	"testing"
)

// TestSharedServer checks what makes another shared server.
func TestSharedServer(t *testing.T) {
	home := t.TempDir()
	c, o := &configuration{home: home}, &options{engine: "native"}
	name := func() string {
		name, err := c.sharedServer(o)
		if err != nil {
			t.Skip(err)
		}
		return name
	}
	config := "[model_providers.x]\nenv_key = \"NAMED_KEY\"\nname = \"OTHER\""
	write(t, filepath.Join(home, "config.toml"), config)
	before := name()
	for _, tt := range []struct {
		name    string
		change  func()
		another bool
	}{
		{"a variable that nobody reads", func() { t.Setenv("OTHER", "1") }, false},
		{"a variable of config.toml", func() { t.Setenv("NAMED_KEY", "1") }, true},
		{"its value", func() { t.Setenv("NAMED_KEY", "2") }, true},
		{"a key", func() { t.Setenv("OPENAI_API_KEY", "3") }, true},
		{"a proxy", func() { t.Setenv("https_proxy", "http://proxy") }, true},
		{"authorities", func() { t.Setenv("SSL_CERT_FILE", "/ca.pem") }, true},
		{"another word in config.toml", func() { write(t, filepath.Join(home, "config.toml"), config+"\n") }, false},
		{"codex-mcp.toml", func() { write(t, filepath.Join(home, "codex-mcp.toml"), "shared = true") }, true},
		{"a flag", func() { o.engine = "codex" }, true},
		{"an override", func() { o.overrides = []string{"a=b"} }, true},
	} {
		tt.change()
		if now := name(); (now != before) != tt.another {
			t.Errorf("%s: %s after %s", tt.name, now, before)
		}
		before = name()
	}
}
