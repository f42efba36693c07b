package elicit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
)

// TestForward passes a question of another party on: how it ends, and that it takes the place of a
// question only as long as it is open.
func TestForward(t *testing.T) {
	q := &elicit.Question{Message: "Name?", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}}}`)}
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		client elicit.Client
		answer func(context.Context) (string, error)
		want   string
		err    error
	}{
		"an answer":       {able, func(context.Context) (string, error) { return `{"action":"accept","content":{"n":"ann"}}`, nil }, `{"action":"accept","content":{"n":"ann"}}`, nil},
		"no form":         {able, func(context.Context) (string, error) { return `[]`, nil }, `[]`, nil},
		"an error":        {able, func(context.Context) (string, error) { return "", broken }, "", broken},
		"silence":         {able, func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }, "", context.DeadlineExceeded},
		"no capabilities": {elicit.Client{}, func(context.Context) (string, error) { t.Error("asked"); return "", nil }, "", elicit.ErrUnsupported},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := elicit.NewAsker(elicit.CallFunc(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
				text, err := tt.answer(ctx)
				return json.RawMessage(text), err
			}), tt.client, &elicit.Options{MaxPending: 1})
			start := time.Now()
			for range 2 { // the second one gets the place of the first
				got, err := a.Forward(t.Context(), q)
				if string(got) != tt.want || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
					t.Errorf("%s: %s, %v", name, got, err)
				}
			}
			if took := time.Since(start); name == "silence" && took != 20*time.Minute || name != "silence" && took != 0 {
				t.Errorf("%s: after %v", name, took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // a question waits for the one before it, until it is no longer asked
		release := make(chan struct{})
		a := elicit.NewAsker(elicit.CallFunc(func(context.Context, json.RawMessage) (json.RawMessage, error) {
			<-release
			return json.RawMessage(`{"action":"cancel"}`), nil
		}), able, &elicit.Options{MaxPending: 1})
		first := make(chan string)
		go func() {
			got, err := a.Forward(context.Background(), q)
			first <- fmt.Sprint(string(got), err)
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := a.Forward(ctx, q); got != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second question: %s, %v", got, err)
		}
		close(release)
		if got := <-first; got != `{"action":"cancel"}<nil>` {
			t.Error(got)
		}
	})
}
