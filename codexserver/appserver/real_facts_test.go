//go:build realcodex

package appserver_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
)

// fact is something that Codex can do since a version: the first that was measured with it.
// Tests check both sides, so that a version that differs from its fact fails.
type fact [3]int

// newAgents: the model gpt-6.1-sol is known, whose sub-agents announce themselves.
var newAgents = fact{0, 169, 0}

// can reports whether the installed Codex is of the fact's version or newer.
func can(t *testing.T, f fact) bool {
	t.Helper()
	v, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Compare(v[:], f[:]) >= 0
}

var installed = sync.OnceValues(func() (v fact, err error) {
	bin, err := appserver.Find("")
	if err != nil {
		return v, err
	}
	out, err := exec.Command(bin, "--version").Output()
	if err != nil {
		return v, err
	}
	words := strings.Fields(string(out)) // codex-cli 0.169.0
	_, err = fmt.Sscanf(words[len(words)-1], "%d.%d.%d", &v[0], &v[1], &v[2])
	return v, err
})
