package stack_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	_ "github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/stack"
)

// Initializing internal/godebug is the first work that would grow the stack.
func TestFirst(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var order []string
	for line := range strings.Lines(string(out)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "init" {
			order = append(order, words[1])
		}
	}
	own := slices.IndexFunc(order, func(path string) bool { return strings.HasSuffix(path, "/internal/stack") })
	if other := slices.Index(order, "internal/godebug"); own < 0 || other < own {
		t.Errorf("initialized in the order %q", order)
	}
}
