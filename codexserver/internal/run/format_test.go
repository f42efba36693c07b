package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func lines(from, to int) string {
	var b strings.Builder
	for n := from; n <= to; n++ {
		fmt.Fprintln(&b, n)
	}
	return b.String()
}

func TestFormatOutput(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	tests := []struct{ name, in, want string }{
		{"empty", "", ""}, {"127 lines", lines(1, 127), lines(1, 127)}, {"128 lines", lines(1, 128), lines(1, 128)},
		{"256 lines", lines(1, 256), lines(1, 256)},
		{"256 lines, the last one open", lines(1, 255) + "256", lines(1, 255) + "256"},
		{"257 lines", lines(1, 257), lines(1, 128) + "[... omitted 1 of 257 lines ...]\n\n" + strings.TrimSuffix(lines(130, 257), "\n")},
		{"5000 lines", lines(1, 5000), lines(1, 128) + "[... omitted 4744 of 5000 lines ...]\n\n" + strings.TrimSuffix(lines(4873, 5000), "\n")},
		{"5120 bytes", x(5120), x(5120)}, {"10240 bytes", x(10240), x(10240)},
		{"40000 bytes in a line", "a" + x(39998) + "z", "a" + x(5119) + "\n[... omitted 29824 of 40000 bytes ...]\n\n" + x(5055) + "z"},
		{"runes that no cut may split", strings.Repeat("日", 4000), strings.Repeat("日", 1706) + "\n[... omitted 1824 of 12000 bytes ...]\n\n" + strings.Repeat("日", 1686)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			must.Equal(t, "the output", tt.want, run.FormatOutput(tt.in))
		})
	}
}

func TestModelOutput(t *testing.T) {
	tests := []struct {
		result run.Result
		want   string
	}{
		{run.Result{}, `{"output":"","metadata":{"exit_code":0,"duration_seconds":0.0}}`},
		{run.Result{Aggregated: "a \"b\"\n", ExitCode: 3, Duration: 1260 * time.Millisecond}, `{"output":"a \"b\"\n","metadata":{"exit_code":3,"duration_seconds":1.3}}`},
		{run.Result{Aggregated: "x", ExitCode: 124, Duration: 703 * time.Millisecond, TimedOut: true}, `{"output":"command timed out after 703 milliseconds\nx","metadata":{"exit_code":124,"duration_seconds":0.7}}`},
	}
	for _, tt := range tests {
		must.Equal(t, "the output", tt.want, run.ModelOutput(tt.result))
	}
}
