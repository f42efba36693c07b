//go:build realcodex

package main

import (
	"os"
	"testing"
)

// TestRealAttacks plays every attack at every other entry, and at every one with -whole, with the
// Codex that CODEX_BIN names.
func TestRealAttacks(t *testing.T) {
	if os.Getenv("CODEX_BIN") == "" {
		t.Fatal("CODEX_BIN does not name a Codex")
	}
	for n, a := range attacks {
		if a.never["bridge"] != "" {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			for i, entry := range a.entries() {
				if (n+i)%2 != 0 && !*whole {
					continue
				}
				t.Run(entry.name, func(t *testing.T) {
					t.Parallel()
					if got := a.try(newVictim(t, entry, true)); got != "" {
						t.Error(got)
					}
				})
			}
		})
	}
}
