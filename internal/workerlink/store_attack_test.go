package workerlink_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/codexmcp/codexmcp/internal/workerlink"
)

// attackPatience bounds each wait. Only a failing test reaches it.
const attackPatience = 20 * time.Second

// counting is a store that counts the calls that run at a time.
type counting struct {
	store.Store
	now, most atomic.Int64
	release   chan struct{}
}

func (c *counting) Put(ctx context.Context, _ string, _ []byte) error {
	n := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	select {
	case <-c.release:
		return nil
	case <-ctx.Done():
		return errors.Join(store.ErrUnavailable, ctx.Err())
	}
}

// A worker that sends calls without end, and reads no answer, has so many at a time that the node
// keeps little of them. Its node ends it without waiting.
func TestStoreFlood(t *testing.T) {
	for name, answers := range map[string]bool{"the store does not answer": false, "the answers are not read": true} {
		t.Run(name, func(t *testing.T) {
			c := &counting{release: make(chan struct{})}
			if answers {
				close(c.release)
			}
			node, worker := net.Pipe()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			served := make(chan error, 1)
			go func() { served <- workerlink.ServeStore(ctx, node, c) }()
			var sent atomic.Int64
			flood := make(chan struct{})
			go func() {
				defer close(flood)
				for {
					if _, err := io.WriteString(worker, frame(head(1, "a", 0), "data")); err != nil {
						return
					}
					sent.Add(1)
				}
			}()
			for last := int64(-1); ; { // until it waits
				<-time.After(100 * time.Millisecond)
				n := sent.Load()
				if n == last && n > 0 {
					break
				}
				last = n
			}
			if most := c.most.Load(); most > 16 {
				t.Errorf("%d calls ran at a time", most)
			}
			if n := sent.Load(); n > 400 { // those that run, and what the node reads ahead
				t.Errorf("the node took %d calls", n)
			}
			cancel()
			select {
			case err := <-served:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(attackPatience):
				t.Fatal("the node waits for the worker")
			}
			<-flood
		})
	}
}

// A frame that is announced takes no memory before it comes.
func TestStoreAnnounced(t *testing.T) {
	node, worker := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- workerlink.ServeStore(t.Context(), node, &memory{}) }()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text := binary.BigEndian.AppendUint32(nil, store.MaxValue) // the largest that is allowed
	if _, err := worker.Write(append(text, head(1, "a", 0)...)); err != nil {
		t.Fatal(err)
	}
	<-time.After(50 * time.Millisecond)
	runtime.ReadMemStats(&after)
	if used := int64(after.TotalAlloc - before.TotalAlloc); used > 4<<20 {
		t.Errorf("%d bytes for a frame that has not come", used)
	}
	_ = worker.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A call that is sent again is carried out once: its bytes would be in another place of the log.
func TestStoreReplayed(t *testing.T) {
	d, err := store.OpenDir(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	node, worker := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- workerlink.ServeStore(t.Context(), node, d) }()
	for i, want := range []byte{0, 5, 5} { // the second and the third are out of order
		if _, err := io.WriteString(worker, frame(head(0, "log", 0), "once")); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 4)
		if _, err := io.ReadFull(worker, answer); err != nil {
			t.Fatal(err)
		}
		answer = make([]byte, binary.BigEndian.Uint32(answer))
		if _, err := io.ReadFull(worker, answer); err != nil || answer[0] != want {
			t.Errorf("call %d: %q, %v", i, answer, err)
		}
	}
	_ = worker.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	got, err := d.Read(t.Context(), "log", 0, 100)
	if err != nil || string(got) != "once" {
		t.Errorf("%q, %v", got, err)
	}
}

// Names that could lead to the state of another user, or out of a stream, reach no store.
func TestStoreNames(t *testing.T) {
	for _, name := range []string{
		"..", "../bob/a", "a/../../b", "/a", "a/", "a//b", ".hidden", "a b", "a*", ">", "*", "a.>/b\x00", "a\r\nPUB x 1\r\n", "a=b", "ä", strings.Repeat("x", 256), strings.Repeat("a/", 300) + "b",
	} {
		m := &memory{}
		var text strings.Builder
		for method := range byte(4) {
			data := map[byte]string{0: "x", 1: "x", 3: "\x00\x00\x00\x01"}[method]
			text.WriteString(frame(head(method, name, 0), data))
		}
		_ = workerlink.ServeStore(t.Context(), &end{Reader: strings.NewReader(text.String())}, m) // some end the connection
		if len(m.calls) > 0 {
			t.Errorf("%.20q reaches the store: %q", name, m.calls)
		}
	}
}
