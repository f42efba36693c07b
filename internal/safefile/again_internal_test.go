package safefile

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestAgain has files that others have open for a while.
func TestAgain(t *testing.T) {
	busy, other := errors.New("busy"), errors.New("other")
	for _, tt := range []struct {
		name string
		open time.Duration // how long the file is
		then error
		want error
	}{
		{"a moment", 300 * time.Millisecond, nil, nil},
		{"and then it fails", time.Millisecond, other, other},
		{"not at all", 0, other, other},
		{"always", time.Hour, nil, busy},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			err := again(func() error {
				if time.Since(begin) < tt.open {
					return busy
				}
				return tt.then
			}, func(err error) bool { return errors.Is(err, busy) })
			if took := time.Since(begin); !errors.Is(err, tt.want) || took > min(2*tt.open, 1100*time.Millisecond) {
				t.Errorf("%s: %v after %v", tt.name, err, took)
			}
		})
	}
}
