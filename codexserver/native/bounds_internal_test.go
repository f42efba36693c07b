package native

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
)

// TestLists has lists that are shown whole, and longer ones.
func TestLists(t *testing.T) {
	for n, want := range map[int]string{0: "", 100: "n99", 101: "and 1 more"} {
		tools := []model.Tool{{Type: webSearchType}}
		for i := range n {
			tools = append(tools, model.Tool{Name: fmt.Sprint("n", i)})
		}
		if got := names(tools); len(got) != n && n <= 100 || n > 0 && got[len(got)-1] != want {
			t.Errorf("%d tools: %q", n, got)
		}
	}
}

// TestInbox closes an inbox only when its messages were taken.
func TestInbox(t *testing.T) {
	b := newInbox()
	b.open()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 100 {
				if err := b.put(t.Context(), inboxMessage{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	taken := 0
	for taken < 200 && !t.Failed() {
		taken += len(b.take())
		runtime.Gosched()
	}
	all.Wait()
	if taken != 200 || !b.empty() || !b.done() {
		t.Errorf("%d messages", taken)
	}
	if err := b.put(t.Context(), inboxMessage{}); !errors.Is(err, engine.ErrNoTurn) {
		t.Errorf("after the end: %v", err)
	}
	late := newInbox()
	late.messages = make([]inboxMessage, 3)
	if late.done() || late.closed {
		t.Error("an inbox with messages was closed")
	}
	if n := len(late.close()); n != 3 || !late.closed || !late.empty() {
		t.Errorf("%d messages at the end", n)
	}
	<-late.ready
	late.close() // again
}
