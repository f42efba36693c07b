//go:build realcodex

package appserver_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
)

// fact is something that Codex can do since a version: the first that was measured with it.
// Tests check both sides, so that a version that differs from its fact fails.
type fact [3]int

var (
	newAgents = fact{0, 169, 0}
)

// can reports whether the installed Codex is of the fact's version or newer.
func can(t *testing.T, f fact) bool {
	t.Helper()
	bin, err := appserver.Find("")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), bin, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	var v fact
	words := strings.Fields(string(out)) // codex-cli 0.169.0
	if _, err := fmt.Sscanf(words[len(words)-1], "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	for i := range v {
		if v[i] != f[i] {
			return v[i] > f[i]
		}
	}
	return true
}
