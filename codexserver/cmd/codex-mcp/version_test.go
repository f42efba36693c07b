package main

import (
	"strings"
	"testing"
)

// TestVersionLine has the line of each name. Clients look for codex-cli and a number of three parts.
func TestVersionLine(t *testing.T) {
	for name, want := range map[string]string{"codex-mcp": "codex-mcp dev (go", "codex": "codex-cli 0.153.4 (codex-mcp dev, go"} {
		if got := versionLine(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
