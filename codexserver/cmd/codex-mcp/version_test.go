package main

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionLine(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}}
	system := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
	for _, tt := range []struct {
		name, module string
		settings     []debug.BuildSetting
		want         string
	}{
		{"a tag in a checkout", "v0.1.0", commit, "codex-mcp 0.1.0 (0123456789ab, "},
		{"changes after a tag", "v0.1.0+dirty", commit, "codex-mcp 0.1.0+dirty (0123456789ab, "},
		{"a commit after a tag", "v0.1.1-0.20261120111212-0123456789ab", commit, "codex-mcp 0.1.1-0.20261120111212-0123456789ab (0123456789ab, "},
		{"go install at a version", "v0.1.0", nil, "codex-mcp 0.1.0 ("},
		{"go run", "(devel)", nil, "codex-mcp dev ("},
		{"a commit of one letter", "(devel)", []debug.BuildSetting{{Key: "vcs.revision", Value: "0"}}, "codex-mcp dev (0, "},
	} {
		if got := versionLine("codex-mcp", &debug.BuildInfo{Main: debug.Module{Version: tt.module}, Settings: tt.settings}); got != tt.want+system {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want+system)
		}
	}
	if got := versionLine("codex-mcp", nil); !strings.HasPrefix(got, "codex-mcp dev (go") {
		t.Errorf("without build information: %q", got)
	}
	// Clients look for codex-cli and a number of three parts.
	if got := versionLine("codex", nil); !strings.HasPrefix(got, "codex-cli 0.153.4 (codex-mcp dev, go") {
		t.Errorf("as codex: %q", got)
	}
}
