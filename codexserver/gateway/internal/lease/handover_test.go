package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
)

// TestHandOver gives a lease to another node. Requests that come meanwhile are refused; those that are
// open get a moment.
func TestHandOver(t *testing.T) {
	for name, tt := range map[string]struct {
		ends bool // the open request, before the moment is over
		may  bool
	}{
		"quick": {true, true}, "a stream": {false, true}, "it works again": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			a, b := join(t, s, "a", forever, nil), join(t, s, "b", forever, nil)
			l := a.take(t, "ann")
			held, release, err := a.Hold(t.Context(), "ann", l.Epoch)
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			handed := make(chan error, 1)
			go func() {
				handed <- a.HandOver(t.Context(), "ann", func() bool {
					asked++
					if held.Err() == nil == tt.ends {
						t.Errorf("the open request: %v", held.Err())
					}
					return tt.may
				})
			}()
			clustertest.Until(t, "requests are still admitted", func() bool {
				_, release, err := a.Hold(t.Context(), "ann", l.Epoch)
				if err == nil {
					release()
				}
				return err != nil
			})
			if tt.ends {
				release()
			}
			if err := <-handed; err != nil || asked != 1 {
				t.Fatalf("%v, asked %d times", err, asked)
			}
			if !tt.may {
				after, _, err := a.Hold(t.Context(), "ann", l.Epoch)
				if err != nil || after.Err() != nil || len(a.lost) > 0 {
					t.Errorf("the node does not keep the user: %v, %d workers are stopped", err, len(a.lost))
				}
				return
			}
			if cause := context.Cause(held); !tt.ends && !errors.Is(cause, lease.ErrLost) || len(a.lost) != 1 {
				t.Errorf("the stream: %v; %d workers are stopped", cause, len(a.lost))
			}
			if got := b.take(t, "ann"); got.ID != "b" || got.Epoch <= l.Epoch {
				t.Errorf("the next lease: %+v", got)
			}
		})
	}
}

// TestCloseWhileHandedOver checks that the end of a holder waits for the worker of a lease that is just being handed
// over.
func TestCloseWhileHandedOver(t *testing.T) {
	s := start(t)
	stops, stop := make(chan struct{}), make(chan struct{})
	var stopped atomic.Bool
	a := join(t, s, "a", forever, func(string) {
		close(stops)
		<-stop
		stopped.Store(true)
	})
	a.take(t, "ann")
	handed := make(chan error, 1)
	go func() { handed <- a.HandOver(t.Context(), "ann", func() bool { return true }) }()
	<-stops
	time.AfterFunc(50*time.Millisecond, func() { close(stop) })
	if err := a.Close(t.Context()); err != nil || !stopped.Load() {
		t.Errorf("the worker is stopped: %v, %v", stopped.Load(), err)
	}
	if err := <-handed; err != nil {
		t.Error(err)
	}
}

// TestReleaseWhileHandedOver checks that a lease is given back, although it is just being handed over and
// then is not.
func TestReleaseWhileHandedOver(t *testing.T) {
	s := start(t)
	a := join(t, s, "a", forever, nil)
	a.take(t, "ann")
	err := a.HandOver(t.Context(), "ann", func() bool {
		if err := a.Release(t.Context(), "ann"); err != nil {
			t.Error(err)
		}
		return false
	})
	if _, free := a.leases.Get(t.Context(), "ann"); err != nil || !errors.Is(free, lease.ErrFree) || len(a.lost) != 1 {
		t.Errorf("%v, %v, %d workers are stopped", err, free, len(a.lost))
	}
}
