package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEnvironLetterCase has names that are one variable on Windows.
func TestEnvironLetterCase(t *testing.T) {
	p := EnvPolicy{Set: map[string]string{"PATH": "mine"}, IncludeOnly: []string{"path", "temp"}}
	for system, want := range map[string][]string{
		"windows": {"PATH=mine", "temp=2"},
		"linux":   {"PATH=mine", "Path=its", "Temp=1", "temp=2"},
	} {
		if diff := cmp.Diff(want, p.environ(system, []string{"Path=its", "Temp=1", "temp=2"})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", system, diff)
		}
	}
}
