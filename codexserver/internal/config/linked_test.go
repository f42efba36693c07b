package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
)

// TestLinked makes links in a home as programs that manage configuration files do.
func TestLinked(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(top, "home")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(home, "codex-mcp"), 0o755), os.MkdirAll(filepath.Join(top, "dots", "prompts"), 0o755),
		os.Symlink("../dots/first", filepath.Join(home, "config.toml")), os.Symlink("second", filepath.Join(top, "dots", "first")),
		os.WriteFile(filepath.Join(top, "dots", "second"), nil, 0o600),
		os.Symlink(filepath.Join(top, "dots", "missing"), filepath.Join(home, "codex-mcp.toml")),
		os.Symlink("../../dots/rules", filepath.Join(home, "codex-mcp", "rules.json")),
		os.Symlink("../dots/prompts", filepath.Join(home, "prompts")),
		os.Symlink("../texts/one.md", filepath.Join(top, "dots", "prompts", "one.md")), // which is below dots, not below home
		os.Symlink("loop", filepath.Join(home, "loop")),
		os.WriteFile(filepath.Join(home, "auth.json"), nil, 0o600),
	} {
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Fatal(err)
		}
	}
	var got []string
	for _, path := range config.Linked(home) {
		if rel := strings.TrimPrefix(path, top+string(filepath.Separator)); !slices.Contains(got, rel) {
			got = append(got, rel)
		}
	}
	slices.Sort(got)
	want := []string{"dots/first", "dots/missing", "dots/prompts", "dots/rules", "dots/second", "dots/texts/one.md", "home/loop"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := config.Linked(filepath.Join(top, "none")); got != nil {
		t.Errorf("without a home: %q", got)
	}
}
