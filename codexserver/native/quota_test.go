package native_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestRateLimits has the limits that were reported last, whichever conversation is the newest. A list of models tells
// those that are not over.
func TestRateLimits(t *testing.T) {
	home := t.TempDir()
	e := open(t, native.Options{CodexHome: home})
	keep := func(n int, at string, percent float64, resets int) {
		line := fmt.Sprintf(`{"timestamp":%q,"type":"event_msg","payload":{"type":"token_count","rate_limits":{"primary":{"used_percent":%g,"window_minutes":300,"resets_in_seconds":%d}}}}`, at, percent, resets)
		write(t, filepath.Join(home, "sessions", "2026", "11", "20", fmt.Sprintf("rollout-2026-11-20T%02d-00-00-0199e0ad-0000-7000-8000-%012[1]d.jsonl", n)), line+"\n")
	}
	check := func(want float64, told string) {
		t.Helper()
		limits, reported, err := e.RateLimits(t.Context())
		if err != nil || (limits != nil) != (want > 0) || limits != nil && (limits.Primary.UsedPercent != want || reported.IsZero()) {
			t.Errorf("%+v at %v, %v, want %g", limits, reported, err, want)
		}
		list, err := e.Models(t.Context())
		if notes := strings.Join(list.Notes, " "); err != nil || strings.Contains(notes, "limits of the account") != (told != "") || !strings.Contains(notes, told) {
			t.Errorf("notes %q, %v, want %q", notes, err, told)
		}
	}
	check(0, "")
	keep(1, "2025-11-20T12:00:00Z", 42, 60)
	keep(2, "2025-11-20T11:00:00Z", 7, 60)
	check(42, "")
	keep(3, time.Now().UTC().Format(time.RFC3339), 77, 3600)
	check(77, "77% used of 5h0m0s, resets in ")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := e.RateLimits(ctx); err == nil {
		t.Error("RateLimits worked after the end of its context")
	}
}

// TestRateLimitsOfATurn reads the limits of a provider's headers.
func TestRateLimitsOfATurn(t *testing.T) {
	limited := providertest.Say("hi")
	limited.Header = map[string][]string{"X-Codex-Primary-Used-Percent": {"12.5"}, "X-Codex-Primary-Window-Minutes": {"300"}}
	b := setup(t, "---\nwire_api = \"responses\"\n", native.Limits{}, limited)
	turn(t, b.start(t, &host{}, protocol.Config{}), say("go"))
	b.reopen(t)
	got, reported, err := b.engine.RateLimits(t.Context())
	want := &protocol.RateLimits{Primary: &protocol.RateLimitWindow{UsedPercent: 12.5, WindowMinutes: new(int64(300))}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || reported.IsZero() || reported.After(time.Now()) {
		t.Errorf("reported at %v, %v (-want +got):\n%s", reported, err, diff)
	}
	diff(t, "requests", 1, len(b.provider.Requests()))
}
