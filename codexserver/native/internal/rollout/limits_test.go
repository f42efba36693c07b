package rollout_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/google/go-cmp/cmp"
)

// TestRateLimits finds the last limits. A provider may report only one of the two windows.
func TestRateLimits(t *testing.T) {
	type used struct{ Primary, Secondary float64 } // 0 for none
	count := func(limits string) string {
		return lineOf("event_msg", `{"type":"token_count","info":null,"rate_limits":`+limits+`}`)
	}
	const none, first, second = `{"primary":null,"secondary":null}`, `{"primary":{"used_percent":5},"secondary":null}`, `{"primary":null,"secondary":{"used_percent":7}}`
	for name, tt := range map[string]struct {
		lines string
		want  used
	}{
		"no limits":        {lines: count("null") + count(none)},
		"the first window": {count(first) + count(none), used{Primary: 5}},
		"the second one":   {count(first) + count(second), used{Secondary: 7}},
		"in the last MiB":  {count(none) + count(first) + strings.Repeat("\n", 1<<20-len(count(first))), used{Primary: 5}},
		"before it":        {count(first) + strings.Repeat("\n", 1<<20), used{}},
		"both":             {count(second) + count(`{"primary":{"used_percent":5},"secondary":{"used_percent":7}}`), used{5, 7}},
	} {
		path := filepath.Join(t.TempDir(), "rollout")
		if err := os.WriteFile(path, []byte(tt.lines), 0o600); err != nil {
			t.Fatal(err)
		}
		limits, reported, err := rollout.RateLimits(path)
		var got used
		if limits != nil && limits.Primary != nil {
			got.Primary = limits.Primary.UsedPercent
		}
		if limits != nil && limits.Secondary != nil {
			got.Secondary = limits.Secondary.UsedPercent
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil || limits != nil && reported.Format(time.DateOnly) != "2025-09-30" {
			t.Errorf("%s: reported %v, %v (-want +got):\n%s", name, reported, err, diff)
		}
	}
}

// lineOf returns a line of a rollout.
func lineOf(kind, payload string) string {
	return `{"timestamp":"2025-09-30T10:11:12.000Z","type":"` + kind + `","payload":` + payload + "}\n"
}
