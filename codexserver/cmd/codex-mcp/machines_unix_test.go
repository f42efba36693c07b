//go:build unix

package main

import (
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv"
)

// TestMachines plays tests that ask the machine most as on the machines of users.
func TestMachines(t *testing.T) {
	testenv.Play(t, "^(TestGoldenLines|TestNewcomer|TestTurnWritesItsRecords|TestEndToEndNotify|TestEndToEndCalledCodex|TestTerminalAsk)$")
}
