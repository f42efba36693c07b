package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestDoctorReportsTrustedCalls checks the row about what a call may configure.
func TestDoctorReportsTrustedCalls(t *testing.T) {
	t.Setenv("CODEX_HOME", t.TempDir())
	for _, tt := range []struct {
		flags   []string
		trusted bool
	}{
		{nil, false},
		{[]string{"-c", "calls.trusted=true"}, true},
	} {
		args := append([]string{"doctor", "-engine", "native", "-c", "model_provider=oss", "-c", "model_providers.oss.base_url=http://127.0.0.1:1"}, tt.flags...)
		var screen, data, stderr bytes.Buffer
		run(t.Context(), "codex-mcp", args, &screen, &stderr) // its status is about the provider
		if strings.Contains(screen.String(), "calls.trusted: the argument config of a call may set every key") != tt.trusted {
			t.Errorf("%q: the screen:\n%s%s", tt.flags, &screen, &stderr)
		}
		run(t.Context(), "codex-mcp", append(args, "-json"), &data, &stderr)
		var d diagnosis
		if err := json.Unmarshal(data.Bytes(), &d); err != nil || d.TrustedCalls != tt.trusted {
			t.Errorf("%q: %v, trustedCalls %v", tt.flags, err, d.TrustedCalls)
		}
	}
}
