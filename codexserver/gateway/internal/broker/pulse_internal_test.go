package broker

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestPulse has a NATS that answers, refuses and says nothing.
func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mode atomic.Value
		mode.Store("answers")
		p := newPulse(func(ctx context.Context) error {
			switch mode.Load() {
			case "answers":
				return nil
			case "refuses":
				return errors.New("no connection")
			}
			<-ctx.Done()
			return ctx.Err()
		})
		defer p.close()
		<-time.After(pulseInterval / 2) // what follows is between two questions
		for _, step := range []struct {
			mode  string
			after time.Duration
			want  string // part of the error; "" for none
		}{
			{"answers", 10 * time.Minute, ""},
			{"says nothing", maxSilence - 2*pulseInterval, ""},
			{"says nothing", 3 * pulseInterval, "has not answered for 5s"},
			{"answers", 2 * pulseInterval, ""},
			{"refuses", time.Minute, "cut off from NATS, which has not answered for 1m"},
			{"answers", 2 * pulseInterval, ""},
		} {
			mode.Store(step.mode)
			<-time.After(step.after)
			err := p.check()
			if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
				t.Errorf("NATS %s for %v: %v, want %q", step.mode, step.after, err, step.want)
			}
		}
	})
}
