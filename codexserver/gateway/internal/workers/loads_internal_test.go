package workers

import (
	"context"
	"io"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/internal/workerlink"
	"github.com/google/go-cmp/cmp"
)

// TestLoads checks that a worker that does not answer delays the loads of the others by two
// seconds only, and that a worker that has ended or has not started has no load.
func TestLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ann, silent, ended := newFakeWorker(), newFakeWorker(), newFakeWorker()
		ann.set(true, false)
		silent.set(true, true)
		ended.end(time.Minute)
		p := &Pool{log: slog.New(slog.DiscardHandler), slots: map[string]*slot{
			"ann": {worker: ann.worker}, "silent": {worker: silent.worker}, "ended": {worker: ended.worker}, "none": {},
		}}
		began := time.Now()
		for range 2 { // a late answer is not that to a later question
			if diff := cmp.Diff(map[string]workerlink.Load{"ann": {Busy: true}}, p.Loads(t.Context())); diff != "" {
				t.Errorf("loads (-want +got):\n%s", diff)
			}
			ann.loads <- workerlink.Load{Requests: 9}
		}
		if took := time.Since(began); took != 2*loadsTimeout {
			t.Errorf("it took %v", took)
		}
		ann.end(time.Minute)
		silent.end(time.Minute)
	})
}

// TestBrokenStatus checks that a worker whose status cannot be read is killed. Its pipe
// would fill up otherwise, and its turns hang.
func TestBrokenStatus(t *testing.T) {
	for name, text := range map[string]string{
		"a long line": string(make([]byte, maxStatus+1)), "no JSON": "ready\n", "another type": `{"ready":1}` + "\n", "nothing": "", "a status": `{"drained":true}` + "\n" + `{"drained":true}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			killed := false
			w := newWorker(slog.New(slog.DiscardHandler), challenger{})
			w.kill = func() error { killed = true; return nil }
			r, sender := io.Pipe()
			go func() {
				_, _ = io.WriteString(sender, text) // fails when the line is too long
				sender.Close()
			}()
			w.readStatus(statuses(r), newPool(Options{}).replay("ann"))
			r.Close()
			if want := name != "nothing" && name != "a status"; killed != want {
				t.Errorf("killed is %v", killed)
			}
		})
	}
}

// TestDeafWorker checks that a worker that does not read its control pipe can be asked for
// its load again and again, and ended.
func TestDeafWorker(t *testing.T) {
	unread, control, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	w := newWorker(slog.New(slog.DiscardHandler), challenger{})
	w.control, w.kill = control, func() error { close(w.exited); return nil }
	if err := control.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for err == nil { // until the pipe is full
		_, err = control.Write(make([]byte, 4096))
	}
	if err := control.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, ok := w.load(ctx); ok {
			t.Error("it has a load")
		}
		w.drain()
		w.end(0)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it hangs")
	}
}
