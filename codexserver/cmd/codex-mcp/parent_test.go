package main

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestParentage has the parents of a server over time, and when the server ends.
func TestParentage(t *testing.T) {
	const never = -1
	second := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	for _, tt := range []struct {
		name    string
		parent  int     // at the start
		left    float64 // when that ends, in seconds; 0 is never
		adopts  bool
		heard   float64 // when a message comes
		working [2]float64
		over    int // when the server ends, in seconds
	}{
		{"a host that lives", 7, 0, false, 0, [2]float64{}, never},
		{"a host that was killed", 7, 60.5, false, 30, [2]float64{}, 66},
		{"a host that was killed soon", 7, 2.5, false, 1, [2]float64{}, 8},
		{"in a turn", 7, 60.5, false, 30, [2]float64{30, 100.5}, 105},
		{"in a turn that begins later", 7, 60.5, false, 30, [2]float64{62, 100.5}, 105},
		{"sh -c 'codex-mcp &'", 7, 0.01, false, 0, [2]float64{}, never},
		{"a slow wrapper", 7, 1.9, false, 0, [2]float64{}, never},
		{"somebody goes on sending", 7, 60.5, false, 63, [2]float64{}, never},
		{"a subreaper", 7, 60.5, true, 0, [2]float64{}, never},
		{"process 1", 1, 60.5, false, 0, [2]float64{}, never},
		{"in a container by itself", 0, 0, false, 0, [2]float64{}, never},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				passed := func(n float64) bool { return n > 0 && time.Since(begun) >= second(n) }
				p := parentage{
					parent: func() int {
						if passed(tt.left) {
							return 1
						}
						return tt.parent
					},
					adopts: func(context.Context, int) bool { return tt.adopts },
					idle: func() (idle bool, heard time.Time) {
						if passed(tt.heard) {
							heard = begun.Add(second(tt.heard))
						}
						return !passed(tt.working[0]) || passed(tt.working[1]), heard
					},
					log: slog.New(slog.DiscardHandler),
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				got := never
				if p.over(ctx) {
					got = int(time.Since(begun) / time.Second)
				}
				must.Equal(t, "the end", tt.over, got)
			})
		})
	}
}
