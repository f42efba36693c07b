package config

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// TestHostileKeys checks that the table of hostile calls has each key that a call may set.
func TestHostileKeys(t *testing.T) {
	for key := range strings.FieldsSeq(callScalars + callMembers + callTables) {
		if !servertest.HostileArgument(key[strings.LastIndex(key, ".")+1:]) {
			t.Errorf("no hostile call has the key %s", key)
		}
	}
}
