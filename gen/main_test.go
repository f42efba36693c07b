package main

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/codexmcp/codexmcp/internal/memdir"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the trees of a schema are small and short-lived
	os.Exit(memdir.Run(m))
}
