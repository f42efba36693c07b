package group_test

import (
	"io"
	"testing"
)

// TestServerIsKilled checks that a group ends with the program that has started it.
func TestServerIsKilled(t *testing.T) {
	cmd := as("server")
	out := output(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Stdout.(io.Closer).Close()
	want(t, out, "child\n", "ready\n")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if _, err := out.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the child's output: %v", err)
	}
}
