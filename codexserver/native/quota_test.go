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

func TestRateLimits(t *testing.T) {
	home := t.TempDir()
	e := open(t, native.Options{CodexHome: home})
	limits := func() (*protocol.RateLimits, string) {
		t.Helper()
		l, reported, err := e.RateLimits(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return l, reported.UTC().Format(time.RFC3339)
	}
	if l, _ := limits(); l != nil {
		t.Errorf("without conversations: %+v", l)
	}
	write := func(name string, lines ...string) {
		t.Helper()
		write(t, filepath.Join(home, "sessions", "2026", "11", "20", name), strings.Join(lines, "\n")+"\n")
	}
	reported := func(at string, percent float64) string {
		return fmt.Sprintf(`{"timestamp":"2026-11-20T%sZ","type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":{"primary":{"used_percent":%g,"window_minutes":300,"resets_in_seconds":60},"secondary":null}}}`, at, percent)
	}
	const none = `{"timestamp":"2026-11-20T23:00:00Z","type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":%s}}`
	// The older conversation has the later limits; lines that are not JSON, or far from
	// the end, are skipped.
	write("rollout-2026-11-20T01-00-00-0199e0ad-0000-7000-8000-000000000001.jsonl", reported("20:00:00", 9), strings.Repeat("x", 2<<20), reported("10:00:00", 1), reported("12:00:00", 42),
		fmt.Sprintf(none, "null"), fmt.Sprintf(none, "{}"), `{"timestamp":"soon"`, `{"timestamp":"2026-11-20T21:00:00Z","type":"event_msg","payload":{"type":"token_count","rate_limits":5}}`)
	write("rollout-2026-11-20T02-00-00-0199e0ad-0000-7000-8000-000000000002.jsonl", reported("11:00:00", 7))
	got, at := limits()
	want := &protocol.RateLimits{Primary: &protocol.RateLimitWindow{UsedPercent: 42, WindowMinutes: new(int64(300)), ResetsInSeconds: new(int64(60))}}
	if diff := cmp.Diff(want, got); diff != "" || at != "2026-11-20T12:00:00Z" {
		t.Errorf("reported at %s (-want +got):\n%s", at, diff)
	}
	if list, err := e.Models(t.Context()); err != nil || strings.Contains(strings.Join(list.Notes, " "), "limits of the account") {
		t.Errorf("limits that are over: %+v, %v", list, err)
	}
	now := time.Now().UTC().Format("T15:04:05")
	write("rollout-2026-11-20T03-00-00-0199e0ad-0000-7000-8000-000000000003.jsonl", strings.Replace(strings.Replace(reported("XX", 77), "2026-11-20TXX", time.Now().UTC().Format("2006-01-02")+now, 1), `in_seconds":60`, `in_seconds":3600`, 1))
	if list, err := e.Models(t.Context()); err != nil || !strings.Contains(strings.Join(list.Notes, " "), "77% used of 5h0m0s, resets in ") {
		t.Errorf("limits: %+v, %v", list, err)
	}
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
