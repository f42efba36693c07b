//go:build realcodex

package main

import (
	"os"
	"testing"
)

// TestRealAttacks plays every attack at every entry, with the Codex that CODEX_BIN names.
func TestRealAttacks(t *testing.T) {
	if os.Getenv("CODEX_BIN") == "" {
		t.Fatal("CODEX_BIN does not name a Codex")
	}
	for _, a := range attacks {
		if a.try == nil {
			continue // of another package
		}
		t.Run(a.name, func(t *testing.T) {
			for _, entry := range attackEntries {
				if a.never["bridge"] != "" || a.never[entry.name] != "" {
					continue
				}
				t.Run(entry.name, func(t *testing.T) {
					t.Parallel()
					if got := a.try(newVictim(t, entry, true, "")); got != "" {
						t.Error(got)
					}
				})
			}
		})
	}
}
