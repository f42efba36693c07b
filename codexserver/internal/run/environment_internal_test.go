package run

import (
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestEnvironLetterCase has names that are one variable on Windows.
func TestEnvironLetterCase(t *testing.T) {
	p := EnvPolicy{Set: map[string]string{"PATH": "mine"}, IncludeOnly: []string{"path", "temp"}}
	for system, want := range map[string][]string{
		"windows": {"PATH=mine", "temp=2"},
		"linux":   {"PATH=mine", "Path=its", "Temp=1", "temp=2"},
	} {
		must.Equal(t, system, want, p.environ(system, []string{"Path=its", "Temp=1", "temp=2"}))
	}
}
