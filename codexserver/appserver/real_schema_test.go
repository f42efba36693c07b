//go:build realcodex

package appserver_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestRealSchema compares the schema of the installed Codex with the part of it that is kept.
func TestRealSchema(t *testing.T) {
	const folder = "apptypes"
	bin := os.Getenv("CODEX_BIN")
	source, err := os.ReadFile(folder + "/SOURCE")
	if err != nil {
		t.Fatal(err)
	}
	version, err := exec.CommandContext(t.Context(), bin, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if v := strings.TrimSpace(string(version)); !strings.Contains(string(source), " "+v+"\n") {
		t.Skipf("the schema is not that of %s", v)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "../../../gen", "-uses", "uses.json", "-schema", "schema.json", "-out", ".", "-codex", bin, "-n")
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "schema: 0\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
