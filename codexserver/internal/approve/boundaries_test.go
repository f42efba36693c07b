package approve_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestTimeAtItsBoundary has questions that nobody answers: without a limit where somebody may come, with the usual limit, and
// with the shortest. Each ends.
func TestTimeAtItsBoundary(t *testing.T) {
	const usual, forever = 10 * time.Minute, 1000 * time.Hour
	for _, tt := range []struct {
		limit time.Duration
		comes bool
		want  time.Duration
	}{
		{-1, true, approve.MaxOpen}, {0, true, usual}, {0, false, usual}, {1, true, 1}, {1, false, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), forever)
			defer cancel()
			b := approve.New(&approve.Options{Questions: elicit.Options{Timeout: tt.limit}}, func(string, string) {})
			defer b.Attach(newClient(servertest.Never, nil))()
			begun := time.Now()
			d := b.Decide(ctx, request(), tt.comes)
			must.Equal(t, tt.limit.String(), tt.want, time.Since(begun))
			if d.Decision.Approves() {
				t.Errorf("%v: %v", tt.limit, d.Decision)
			}
		})
	}
}
