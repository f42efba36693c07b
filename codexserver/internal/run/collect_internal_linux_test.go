package run

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestCollect collects garbage where there is much, or where the collector may run. This process is the keeper.
func TestCollect(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	most := m.HeapAlloc + maxHeap // other tests have left something
	for _, tt := range []struct {
		name    string
		garbage int
		percent int
		want    uint32
	}{
		{"little garbage", 1 << 10, -1, 0},
		{"much garbage", 2 * maxHeap, -1, 1},
		{"the collector may run", 0, 100, 1},
	} {
		left = make([]byte, tt.garbage)
		left = nil
		debug.SetGCPercent(tt.percent)
		before := collections()
		collect(most)
		if got, percent := collections()-before, debug.SetGCPercent(-1); got != tt.want || percent != -1 {
			t.Errorf("%s: %d collections, want %d; the percentage is %d", tt.name, got, tt.want, percent)
		}
	}
}

var left []byte

func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}
