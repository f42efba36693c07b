package elicit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
)

// TestForward passes a question of another party on: how it ends, and that it takes the place of a
// question only as long as it is open.
func TestForward(t *testing.T) {
	f, err := elicit.ServerQuestion("docs", json.RawMessage(`{"message":"Name?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		client elicit.Client
		answer func(context.Context) (string, error)
		want   string
		err    error
	}{
		"an answer":       {able, func(context.Context) (string, error) { return `{"action":"accept","content":{"n":"ann"}}`, nil }, `{"action":"accept","content":{"n":"ann"}}`, nil},
		"no form":         {able, func(context.Context) (string, error) { return `[]`, nil }, `{"action":"decline"}`, nil},
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
				got, err := a.Forward(t.Context(), f)
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
			got, err := a.Forward(context.Background(), f)
			first <- fmt.Sprint(string(got), err)
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := a.Forward(ctx, f); got != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second question: %s, %v", got, err)
		}
		close(release)
		if got := <-first; got != `{"action":"cancel"}<nil>` {
			t.Error(got)
		}
	})
	raw, err := f.InputRequest(able)
	var r struct {
		Method string
		Params struct{ Message string }
	}
	if err != nil || json.Unmarshal(raw, &r) != nil || r.Method != "elicitation/create" || !strings.Contains(r.Params.Message, "Name?") {
		t.Errorf("%s, %v", raw, err)
	}
}

// TestForeignLines bounds the lines, the characters and the bytes of a text, and says what is left out.
func TestForeignLines(t *testing.T) {
	for _, tt := range []struct {
		text  string
		lines int
		last  string
	}{
		{strings.Repeat("a\n", 20), 20, `x: "a"`},
		{strings.Repeat("a\n\n \r", 21), 21, "x: (1 more lines are not shown)"},
		{strings.Repeat("a\u2028", 30), 21, "x: (10 more lines are not shown)"},
		{strings.Repeat("a", 64<<10), 1, ""},
		{strings.Repeat("a", 64<<10+1), 2, "x: (1 more bytes are not shown)"},
		{strings.Repeat(strings.Repeat("b", 5000)+"\n", 11), 0, "more lines are not shown)"},
	} {
		got := elicit.ShowLines("x", tt.text)
		if last := got[len(got)-1]; tt.lines > 0 && len(got) != tt.lines || !strings.Contains(last, tt.last) {
			t.Errorf("%d lines, the last %.80q; want %d, %q", len(got), last, tt.lines, tt.last)
		}
		if n := len(strings.Join(got, "\n")); n > 6000 {
			t.Errorf("%d bytes are shown", n)
		}
	}
	for name, plain := range map[string]bool{strings.Repeat("a", 64): true, strings.Repeat("a", 65): false} {
		if got := elicit.ShowName(name); (got == `"`+name+`"`) != plain {
			t.Errorf("%d characters: %s", len(name), got)
		}
	}
}
