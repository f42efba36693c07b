//go:build realcodex

package main

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
)

// TestRealGolden is [TestGolden] with the real Codex.
func TestRealGolden(t *testing.T) {
	codex, err := appserver.Find("")
	if err != nil {
		t.Fatal(err)
	}
	playGolden(t, "codex", "--codex", codex)
}
