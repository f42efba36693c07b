package config

import (
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// TestHostileKeys checks that the table of hostile calls has each key that a call may set.
func TestHostileKeys(t *testing.T) {
	keys := slices.Concat(callScalars, callTables)
	for _, table := range append(callTables, "approval_policy") {
		keys = append(keys, callMembers(table)...)
	}
	for _, key := range keys {
		if !servertest.HostileArgument(key) {
			t.Errorf("no hostile call has the key %s", key)
		}
	}
}
