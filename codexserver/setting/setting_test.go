package setting_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestTasks(t *testing.T) {
	t.Parallel()
	for in, want := range map[setting.Tasks]setting.Tasks{
		{}:                     {Mode: "auto", Resume: new(true), Grace: time.Second, Limit: 64},
		{Grace: -1, Limit: -1}: {Mode: "auto", Resume: new(true), Grace: -1, Limit: 64},
		{Grace: 1, Limit: 2, Mode: "never", Resume: new(false)}: {Grace: 1, Limit: 2, Mode: "never", Resume: new(false)},
	} {
		must.Equal(t, fmt.Sprintf("%+v", in), want, in.Resolved())
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	defaults := setting.Limits{ModelRequests: 1000, ResponseBytes: 64 << 20, Command: 2 * time.Minute}
	none := defaults
	none.ModelRequests, none.Tokens, none.WallTime = -1, -1, -1
	set := setting.Limits{ModelRequests: 1, Tokens: 2, WallTime: 3, ResponseBytes: 4, Command: 6}
	for in, want := range map[setting.Limits]setting.Limits{
		{}: defaults, set: set,
		{ModelRequests: -1, Tokens: -1, WallTime: -1, ResponseBytes: -1, Command: -1}: none,
	} {
		must.Equal(t, fmt.Sprintf("%+v", in), want, in.Resolved())
	}
}

func TestCodex(t *testing.T) {
	t.Parallel()
	for in, want := range map[setting.Codex]setting.Codex{
		{}: {Reviewer: setting.ReviewerCodex, Reconnect: 2 * time.Minute},
		{Reviewer: setting.ReviewerPerson, Reconnect: -1}: {Reviewer: setting.ReviewerPerson, Reconnect: -1},
	} {
		must.Equal(t, fmt.Sprintf("%+v", in), want, in.Resolved())
	}
}

func TestAsking(t *testing.T) {
	t.Parallel()
	clients := func(w setting.Where) map[string]setting.Where { return map[string]setting.Where{"a": w} }
	for _, tt := range []struct {
		in    setting.Asking
		a, b  setting.Where // where two clients are asked
		pages bool
	}{
		{},
		{in: setting.Asking{Where: setting.WhereClient}, a: setting.WhereClient, b: setting.WhereClient},
		{in: setting.Asking{Where: setting.WherePage}, a: setting.WherePage, b: setting.WherePage, pages: true},
		{in: setting.Asking{Where: setting.WhereBoth}, a: setting.WhereBoth, b: setting.WhereBoth, pages: true},
		{in: setting.Asking{Where: setting.WhereClient, Clients: clients(setting.WherePage)}, a: setting.WherePage, b: setting.WhereClient, pages: true},
		{in: setting.Asking{Clients: clients(setting.WhereBoth)}, a: setting.WhereBoth, pages: true},
		{in: setting.Asking{Where: setting.WherePage, Clients: clients(setting.WhereClient)}, a: setting.WhereClient, b: setting.WherePage, pages: true},
	} {
		if a, b, pages := tt.in.Of("a"), tt.in.Of("b"), tt.in.Pages(); a != tt.a || b != tt.b || pages != tt.pages {
			t.Errorf("%+v: %q and %q, pages %v", tt.in, a, b, pages)
		}
	}
}

// TestCountsInstant says whether an approval counts that came faster than a person can read: not for
// who asks in both places.
func TestCountsInstant(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   setting.Asking
		want bool
	}{
		{setting.Asking{}, true}, {setting.Asking{Where: setting.WhereClient}, true}, {setting.Asking{Where: setting.WhereBoth}, false},
		{setting.Asking{Where: setting.WhereClient, Clients: map[string]setting.Where{"a": setting.WhereBoth}}, false},
		{setting.Asking{Where: setting.WhereBoth, Clients: map[string]setting.Where{"a": setting.WhereClient}}, true},
		{setting.Asking{Where: setting.WhereBoth, Clients: map[string]setting.Where{"b": setting.WhereClient}}, false},
	} {
		must.Equal(t, fmt.Sprintf("%+v", tt.in), tt.want, tt.in.CountsInstant("a"))
	}
}

func Example() {
	fmt.Println("results of", setting.DefaultResult, "bytes")
	// Output: results of 80000 bytes
}
