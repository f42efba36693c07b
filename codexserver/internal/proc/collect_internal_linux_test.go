package proc

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestCollect collects garbage where there is much, or where the collector may run. This process is the keeper.
func TestCollect(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	for _, tt := range []struct {
		name    string
		garbage int
		s       service
		want    uint32
	}{
		{"little garbage", 1 << 10, service{}, 0},
		{"much garbage", 1 << 20, service{}, 1},
		{"the collector may run", 0, service{collecting: true}, 1},
	} {
		left = make([]byte, tt.garbage)
		left = nil
		before := collections()
		tt.s.collect()
		if got := collections() - before; got != tt.want || tt.s.collecting {
			t.Errorf("%s: %d collections, want %d; one may run: %t", tt.name, got, tt.want, tt.s.collecting)
		}
	}
}

var left []byte

func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}
