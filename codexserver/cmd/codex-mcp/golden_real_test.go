//go:build realcodex

package main

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealGolden is [TestGolden] with the real Codex.
func TestRealGolden(t *testing.T) {
	codex := must.Get(appserver.Find(""))(t)
	playGolden(t, "codex", "--codex", codex)
}
