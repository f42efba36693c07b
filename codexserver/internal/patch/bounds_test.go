package patch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestPlanBounds plans small patches that would take hours without a bound.
func TestPlanBounds(t *testing.T) {
	const lines = 100_000
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "same"), []byte(strings.Repeat("x\n", lines)), 0o600))
	for name, tt := range map[string]struct{ sections, want string }{
		"many hunks that are far down": {"*** Update File: same\n" + strings.Repeat("@@\n-\u00a0x\n", lines/2), "takes too long"},
		"a long hunk that almost matches everywhere": {
			"*** Update File: same\n@@\n" + strings.Repeat("-x\n", lines/2) + "-y\n", "takes too long",
		},
		"many updates of a large file": {strings.Repeat("*** Update File: same\n@@\n-x\n+x\n", lines), "takes too long"},
		"many files": {
			func() string {
				var b strings.Builder
				for i := range 6000 {
					fmt.Fprintf(&b, "*** Add File: new%d\n+x\n", i)
				}
				return b.String()
			}(), "more than 5000 files",
		},
	} {
		if testing.Short() && tt.want == "takes too long" {
			continue // the race detector makes them take longer, and finds nothing in one goroutine
		}
		t.Run(name, func(t *testing.T) {
			if _, err := planOf(dir, strings.TrimSuffix(tt.sections, "\n")); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}
