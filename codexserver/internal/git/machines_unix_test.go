//go:build unix

package git_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv"
)

// TestMachines plays tests of repositories as on the machines of users.
func TestMachines(t *testing.T) {
	testenv.Play(t, "^(TestHead|TestRoot|TestVariablesOfGit|TestCompareWithUserSettings)$")
}
