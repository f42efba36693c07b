package interop

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

// stopShared ends the shared servers of a home with the test.
func stopShared(t *testing.T, server []string, home string) {
	t.Helper()
	t.Cleanup(func() {
		cmd := exec.Command(server[0], "shared", "stop")
		cmd.Env = append(os.Environ(), "CODEX_HOME="+home)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("shared stop: %v\n%s", err, out)
		}
	})
}

// TestShared runs official clients, one of each SDK, against a server that they share with
// nobody, through a relay. A task that begins in one process is finished, and its question
// answered, from the next.
func TestShared(t *testing.T) {
	t.Parallel()
	server := ours(t)
	for _, e := range engines(t)[:2] {
		e = e.by(overShared, "shared-"+e.is)
		for _, c := range clients {
			if !slices.Contains([]string{"TypeScript SDK 1", "TypeScript SDK 2 with tasks", "Go SDK"}, c.name) {
				continue
			}
			for _, cell := range cells {
				if cannot(c.client, cell, e.over) != "" || !slices.Contains([]string{"accept", "decline", "resume"}, cell.name) {
					continue
				}
				t.Run(e.name+"/"+c.name+"/"+cell.name, func(t *testing.T) {
					t.Parallel()
					meet(t, server, e, c.client, c.version, cell)
				})
			}
		}
	}
}
