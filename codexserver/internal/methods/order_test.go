package methods_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// writer is an engine whose writes take the less time the later they come.
type writer struct {
	servertest.Engine
	mu    sync.Mutex
	next  time.Duration
	wrote []string
}

func (w *writer) write(what string) error {
	w.mu.Lock()
	w.next -= time.Millisecond
	wait := w.next
	w.mu.Unlock()
	<-time.After(wait)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrote = append(w.wrote, what)
	return nil
}

func (w *writer) SetDefaultModel(_ context.Context, p protocol.SetDefaultModelParams) error {
	if *p.Model == "broken" {
		panic("broken")
	}
	return w.write(*p.Model)
}


// TestChangesHappenInOrder sends twenty changes in one write.
func TestChangesHappenInOrder(t *testing.T) {
	for name, request := range map[string]func(i int) (method, params, change string){
		"setDefaultModel": func(i int) (string, string, string) {
			return "setDefaultModel", fmt.Sprintf(`{"model":"m%d","reasoningEffort":null}`, i), fmt.Sprintf("m%d", i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &writer{next: time.Second}
				end := servertest.Lines(t, codexserver.New(w, nil))
				var lines [][]byte
				var want []string
				for i := range 20 {
					method, params, change := request(i)
					lines = append(lines, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, i, method, params))
					want = append(want, change)
				}
				if err := end.Write(t.Context(), lines); err != nil {
					t.Fatal(err)
				}
				for range lines {
					servertest.Read(t, end, `"result":{}`)
				}
				if diff := cmp.Diff(want, w.wrote); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestCancelledChange cancels a change that waits for another one. It does not happen.
func TestCancelledChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &writer{next: time.Second}
		end := servertest.Lines(t, codexserver.New(w, nil))
		err := end.Write(t.Context(), [][]byte{
			[]byte(`{"jsonrpc":"2.0","id":1,"method":"setDefaultModel","params":{"model":"one"}}`),
			[]byte(`{"jsonrpc":"2.0","id":2,"method":"setDefaultModel","params":{"model":"two"}}`),
			[]byte(`{"jsonrpc":"2.0","id":3,"method":"setDefaultModel","params":{"model":"three"}}`),
			[]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		servertest.Read(t, end, `"id":1,"result":{}`)
		servertest.Read(t, end, `"id":3,"result":{}`)
		if diff := cmp.Diff([]string{"one", "three"}, w.wrote); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestChangeThatPanics checks that a panic in one change affects no other.
func TestChangeThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &writer{next: time.Second}
		end := servertest.Lines(t, codexserver.New(w, nil))
		err := end.Write(t.Context(), [][]byte{
			[]byte(`{"jsonrpc":"2.0","id":1,"method":"setDefaultModel","params":{"model":"broken"}}`),
			[]byte(`{"jsonrpc":"2.0","id":2,"method":"setDefaultModel","params":{"model":7}}`),
			[]byte(`{"jsonrpc":"2.0","id":3,"method":"setDefaultModel","params":{"model":"fine"}}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		servertest.Read(t, end, `"id":1,"error":{"code":-32603,`)
		servertest.Read(t, end, `"id":2,"error":{"code":-32602,`)
		servertest.Read(t, end, `"id":3,"result":{}`)
	})
}

// TestInterruptRightAfterTheMessage sends a message and its interrupt in one write, many
// times. Mostly the turn has not begun when the interrupt arrives.
func TestInterruptRightAfterTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := servertest.Lines(t, codexserver.New(engine.TurnFunc(func(ctx context.Context, _ engine.Host, _ []protocol.InputItem) error {
			<-ctx.Done()
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
		}), nil))
		if err := end.Write(t.Context(), [][]byte{[]byte(`{"jsonrpc":"2.0","id":0,"method":"newConversation","params":{}}`)}); err != nil {
			t.Fatal(err)
		}
		_, id, _ := strings.Cut(servertest.Read(t, end, `"conversationId"`), `"conversationId":"`)
		id, _, _ = strings.Cut(id, `"`)
		for range 100 {
			err := end.Write(t.Context(), [][]byte{
				fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"sendUserMessage","params":{"conversationId":%q,"items":[]}}`, id),
				fmt.Appendf(nil, `{"jsonrpc":"2.0","id":2,"method":"interruptConversation","params":{"conversationId":%q}}`, id),
			})
			if err != nil {
				t.Fatal(err)
			}
			servertest.Read(t, end, `"id":1,"result":{}`)
			servertest.Read(t, end, `"abortReason":"interrupted"`)
		}
	})
}
