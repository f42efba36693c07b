package broker

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// pulseInterval is how often NATS is asked whether it answers.
	pulseInterval = time.Second
	// maxSilence is how long NATS may not answer before a process counts as cut off.
	maxSilence = 3 * time.Second
)

// pulse asks NATS again and again, so that others can know at once whether it answers. A
// connection notices the loss of a network only after its own pings, and its locks may be held
// until then.
type pulse struct {
	ask   func(context.Context) error
	began time.Time
	heard atomic.Int64 // when the last answer came, as a time since began

	stop    context.CancelFunc
	running sync.WaitGroup
}

// newPulse starts to ask. The caller must close the pulse.
func newPulse(ask func(context.Context) error) *pulse {
	ctx, stop := context.WithCancel(context.Background())
	p := &pulse{ask: ask, began: time.Now(), stop: stop}
	p.running.Go(func() { p.run(ctx) })
	return p
}

func (p *pulse) run(ctx context.Context) {
	tick := time.NewTicker(pulseInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asking, cancel := context.WithTimeout(ctx, pulseInterval)
		if p.ask(asking) == nil {
			p.heard.Store(int64(time.Since(p.began)))
		}
		cancel()
	}
}

// check fails if no answer has come for too long.
func (p *pulse) check() error {
	if silent := time.Since(p.began) - time.Duration(p.heard.Load()); silent > maxSilence {
		return fmt.Errorf("cut off from NATS, which has not answered for %v", silent.Round(time.Second))
	}
	return nil
}

func (p *pulse) close() {
	p.stop()
	p.running.Wait()
}
