package mcp

import (
	"os"
	"os/exec"
	"testing"
)

// TestLives looks for a process by its id and its start. Another process with the id is not it.
func TestLives(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	start := startOf(cmd.Process.Pid)
	if start == "" || start == startOf(1) {
		t.Errorf("the start is %q", start)
	}
	for _, c := range []struct {
		process int
		start   string
		want    bool
	}{
		{cmd.Process.Pid, start, true},
		{cmd.Process.Pid, start + "0", false}, // it has the id of one that has ended
		{cmd.Process.Pid, "", false},
		{os.Getpid(), startOf(os.Getpid()), false}, // not another one
		{0, "", false},
		{1 << 30, "", false},
	} {
		if got := lives(c.process, c.start); got != c.want {
			t.Errorf("lives(%d, %q) = %t", c.process, c.start, got)
		}
	}
}
