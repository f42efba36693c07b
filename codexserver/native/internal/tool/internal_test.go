package tool

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestSeen remembers so many files, by their content.
func TestSeen(t *testing.T) {
	b := &Toolbox{seen: map[string][sha256.Size]byte{}}
	for i := range maxSeen {
		b.sees(fmt.Sprint(i), "a")
	}
	for _, path := range []string{"0", fmt.Sprint(maxSeen - 1), "none"} {
		want := path != "none"
		if seen, fresh := b.knows(path, "a"); seen != want || fresh != want {
			t.Errorf("%s: seen %t, fresh %t, want %t", path, seen, fresh, want)
		}
	}
	if seen, fresh := b.knows("0", "b"); !seen || fresh {
		t.Errorf("another content: seen %t, fresh %t", seen, fresh)
	}
	b.sees("one more", "a")
	must.Equal(t, "files after one more", 1, len(b.seen))
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
		must.Equal(t, "the output", tt.want, modelOutput(tt.result))
	}
}
