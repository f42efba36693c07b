//go:build realcodex

package main

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealKept is [TestEndToEndKept] with the Codex that CODEX_BIN names.
func TestRealKept(t *testing.T) {
	must.Get(appserver.Find(""))(t)
	playKept(t, true)
}
