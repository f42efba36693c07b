package boxtest_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
)

func TestRunInSubprocess(t *testing.T) {
	for _, name := range []string{"plain", "a name + signs"} {
		t.Run(name, func(t *testing.T) {
			ran := false
			boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "CHANGED=yes") }, func(*testing.T) { ran = true })
			if child := os.Getenv("CHANGED") == "yes"; ran != child {
				t.Errorf("the function ran: %t, in the child: %t", ran, child)
			}
		})
	}
}
