package appserver_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestSlowRequestEndsNoTurn does not answer a request while a turn runs. The app-server is
// killed only if it answers no other request either.
func TestSlowRequestEndsNoTurn(t *testing.T) {
	for name, hangs := range map[string]bool{"slow": false, "hangs": true} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			f.on["thread/list"] = never
			if hangs {
				f.on["codexmcp/none"] = never
			}
			f.turn = func(r *run) {
				select {
				case <-time.After(time.Minute):
					answered(r)
				case <-r.ctx.Done():
				}
			}
			e := f.engine(appserver.Options{})
			conv := start(t, e, &recorder{})
			turn := begin(t.Context(), conv, text("go"))
			_, err := e.List(t.Context(), protocol.ListConversationsParams{})
			if err == nil || !strings.Contains(err.Error(), "did not answer thread/list within 30s") {
				t.Errorf("error %v", err)
			}
			if err := <-turn; (err != nil) != hangs {
				t.Errorf("the turn ended with %v", err)
			}
		})
	}
}

// TestStalledTurnStart does not answer turn/start for long. That turn fails, and is
// interrupted if it begins later. Another turn continues.
func TestStalledTurnStart(t *testing.T) {
	for name, interrupted := range map[string]bool{"waits": false, "interrupted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const stalled, late = "0199a2b3-0000-7000-8000-000000000002", "late"
				f := newFake(t)
				f.turn = func(r *run) {
					<-time.After(5 * time.Minute)
					answered(r)
				}
				e := f.engine(appserver.Options{})
				busy := start(t, e, &recorder{})
				turn := begin(t.Context(), busy, text("go"))
				synctest.Wait()

				begin, cut := make(chan struct{}), make(chan string, 1)
				f.mu.Lock()
				f.on["thread/start"] = reply(map[string]any{"thread": map[string]any{"id": stalled}, "sandbox": map[string]any{"type": "readOnly"}})
				f.on["turn/start"] = func(*run, *jsonrpc.Request) (any, error) {
					<-begin
					return map[string]any{"turn": map[string]any{"id": late}}, nil
				}
				f.on["turn/interrupt"] = func(r *run, req *jsonrpc.Request) (any, error) {
					cut <- string(req.Params)
					r.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":"interrupted","items":[]}}`, stalled, late)
					return struct{}{}, nil
				}
				f.mu.Unlock()
				conv := start(t, e, &recorder{})
				ctx, want := t.Context(), "did not answer turn/start within 30s"
				if interrupted {
					var stop context.CancelFunc
					ctx, stop = context.WithTimeout(ctx, time.Second)
					defer stop()
					want = context.DeadlineExceeded.Error()
				}
				if err := conv.Turn(ctx, text("go")); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v", err)
				}
				if err := conv.Turn(t.Context(), text("again")); err == nil || !strings.Contains(err.Error(), "has not ended the previous, interrupted turn") {
					t.Errorf("error %v", err)
				}
				<-time.After(time.Minute)
				close(begin)
				if got := <-cut; !strings.Contains(got, stalled) || !strings.Contains(got, late) {
					t.Errorf("interrupted %s", got)
				}
				if err := <-turn; err != nil || len(f.runs) != 1 {
					t.Errorf("the other turn ended with %v; %d runs", err, len(f.runs))
				}
			})
		})
	}
}
