package main

import (
	"os/exec"
	"testing"
)

// The entries of [goldenEntries].
func init() {
	goldenEntries["shared"] = func(t *testing.T, f folders, args ...string) *process {
		newSharing(t, f)
		return launch(t, f, exec.Command(built(t), append([]string{"--shared"}, args...)...))
	}
}
