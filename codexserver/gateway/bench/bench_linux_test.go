package main

import (
	"context"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	sandbox.Main() // so that the enclosure can be tried
	os.Exit(m.Run())
}

// TestMeasures measures each figure in the smallest size, on the real programs. The program checks
// answers itself.
func TestMeasures(t *testing.T) {
	servertest.NeedEnclosure(t)
	l := &lab{dir: servertest.Outside(t)}
	defer func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := l.open(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	z := size{rounds: 1, calls: 1, events: 50, together: 2, busy: 2, idle: 2, nodes: []int{0}, lasts: 50 * time.Millisecond}
	for _, tt := range []struct {
		part      string
		measure   func(context.Context, size) ([]row, error)
		rows      int
		processes []float64 // one of the service, and two for each worker
	}{{"calls", l.calls, 15, nil}, {"states", l.states, 6, []float64{1, 3, 2, 2, 2}}, {"idle", l.idle, 9, []float64{1, 3, 0}}} {
		t.Run(tt.part, func(t *testing.T) {
			rows, err := tt.measure(t.Context(), z)
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) != tt.rows {
				t.Errorf("%d rows, want %d", len(rows), tt.rows)
			}
			var processes []float64
			for _, r := range rows {
				t.Log(r)
				positive := func(v float64) bool { return v > 0 && !math.IsInf(v, 0) || os.Geteuid() != 0 && math.IsNaN(v) }
				switch r.what {
				case "processes of a user":
					processes = r.values
				case "MiB of a user": // of those without a worker, it may be nothing
					if !slices.ContainsFunc(r.values[:2], positive) {
						t.Errorf("%s: %v", r.what, r.values)
					}
				case "CPU of a user, ms/s", "CPU of `ping`, ms", "CPU of `codex`, ms", "CPU of `codex` with an approval, ms", "CPU of an event, µs": // too short
				default:
					if r.title == nil && slices.ContainsFunc(r.values, func(v float64) bool { return !positive(v) }) {
						t.Errorf("%s: %v", r.what, r.values)
					}
				}
			}
			if diff := cmp.Diff(tt.processes, processes); diff != "" {
				t.Errorf("processes (-want +got):\n%s", diff)
			}
		})
	}
}
