package broker

import (
	"strings"
	"testing"
)

// TestCheckVersion checks which servers are new enough.
func TestCheckVersion(t *testing.T) {
	for version, want := range map[string]string{
		"2.9.10": "want 2.11", "2.10.29": "want 2.11", "1.99.0": "want 2.11", "0.0.0": "want 2.11",
		"2.11.0": "", "2.11.0-RC.1": "", "2.15.2": "", "3.0.0": "", "10.1.0": "",
		"": "cannot be read", "new": "cannot be read", "2": "cannot be read",
	} {
		err := checkVersion(version)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", version, err, want)
		}
	}
}
