package link

import (
	"errors"
	"testing"
	"time"
)

// TestHeldUp holds up a process for ten heartbeats. Afterwards it waits for what has come
// meanwhile, and gives up only a side that stays silent.
func TestHeldUp(t *testing.T) {
	const every = time.Second
	begun := time.Now()
	at := func(second int) time.Time { return begun.Add(time.Duration(second) * every) }
	send := func([]byte) error { return nil }
	lives, dead := newEnd("a", begun, send), newEnd("b", begun, send)
	var o ends
	o.add(lives, 2)
	o.add(dead, 2)
	o.beatAll(at(1), begun, every)
	o.beatAll(at(12), at(1), every)
	if err := errors.Join(lives.failure(), dead.failure()); err != nil {
		t.Error(err)
	}
	lives.receive(frame{kindAlive, 0, nil}.append(nil), at(12))
	o.beatAll(at(13), at(12), every)
	if err := lives.failure(); err != nil {
		t.Error(err)
	}
	if err := dead.failure(); !errors.Is(err, ErrLost) {
		t.Errorf("the silent side: %v", err)
	}
}
