//go:build realcodex

package main

import (
	"os"
	"testing"
)

// TestRealAttacks plays every attack with the Codex that CODEX_BIN names.
func TestRealAttacks(t *testing.T) {
	if os.Getenv("CODEX_BIN") == "" {
		t.Fatal("CODEX_BIN does not name a Codex")
	}
	for _, a := range attacks {
		if a.native {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			if got := a.try(newVictim(t, true)); got != "" {
				t.Error(got)
			}
		})
	}
}
