package mcpcall

import (
	"context"
	"encoding/json"
	"errors"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestUnread fills an inbox that nobody reads, with messages as long as they may be.
func TestUnread(t *testing.T) {
	params := make([]byte, 1<<20)
	for _, tt := range []struct {
		maxMessage, notes int
		fails             bool
	}{
		{0, 64, false}, {0, 65, true}, {32 << 20, 64, false}, {32 << 20, 65, true}, {128 << 20, 128, false}, {128 << 20, 129, true},
	} {
		b := newInbox(tt.maxMessage)
		for _, again := range []bool{false, true} { // what is taken makes room
			for range tt.notes {
				b.put(notification{params: params})
			}
			notes, err := b.take()
			if (err != nil) != tt.fails || !tt.fails && len(notes) != tt.notes {
				t.Errorf("with messages of %d bytes, again %t: %d notifications of %d, %v", tt.maxMessage, again, len(notes), tt.notes, err)
			}
		}
	}
}

// TestMetadata checks what a client declares in each request: questions only if somebody answers them, and
// tasks only where the caller can wait for one.
func TestMetadata(t *testing.T) {
	for _, asks := range []bool{false, true} {
		for _, tasks := range []bool{false, true} {
			s := &Session{o: Options{Name: "n", Version: "v", Extensions: []string{"x/y"}}}
			if asks {
				s.o.Ask = func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }
			}
			text := must.Get(json.Marshal(s.metadata(tasks)))(t)
			for words, want := range map[string]bool{
				`"elicitation":{}`: asks, `"io.modelcontextprotocol/tasks":{}`: tasks, `"x/y":{}`: true, `"name":"n"`: true, `"version":"v"`: true,
			} {
				if strings.Contains(string(text), words) != want {
					t.Errorf("asks %t, tasks %t: %s, %s: want %t", asks, tasks, text, words, want)
				}
			}
		}
	}
}

func TestInterval(t *testing.T) {
	if got := (&task{}).interval(); got != 2*time.Second {
		t.Errorf("without one: %v", got)
	}
	for ms, want := range map[float64]time.Duration{-1: 20 * time.Millisecond, 0: 20 * time.Millisecond, 100: 100 * time.Millisecond, 1e300: 30 * time.Second} {
		if got := (&task{PollIntervalMs: &ms}).interval(); got != want {
			t.Errorf("%v ms: %v, want %v", ms, got, want)
		}
	}
}

// TestErrorTexts has errors that are as long as they may be, and longer ones.
func TestErrorTexts(t *testing.T) {
	s := &Session{o: Options{Hide: func(text string) string { return strings.ReplaceAll(text, "secret", "-") }}}
	const most = 64 << 10
	for _, tt := range []struct {
		message, data int
		shown, left   int
	}{
		{most, 0, most, 0}, {most + 1, 0, most + len("… (65537 bytes in all)"), 0}, {0, most, 0, most}, {0, most + 2, 0, 0}, {10, most, 10, most},
	} {
		data := json.RawMessage(nil)
		if tt.data > 0 {
			data = json.RawMessage(`"` + strings.Repeat("x", tt.data-2) + `"`)
		}
		var got *jsonrpc.Error
		if err := s.closed(&jsonrpc.Error{Code: 7, Message: strings.Repeat("x", tt.message), Data: data}); !errors.As(err, &got) || got.Code != 7 || len(got.Message) != tt.shown || len(got.Data) != tt.left {
			t.Errorf("%d and %d bytes become %d and %d", tt.message, tt.data, len(got.Message), len(got.Data))
		}
	}
	if got := s.refusal(7, "secret"+strings.Repeat("x", most), nil).Error(); strings.Contains(got, "secret") {
		t.Error("a secret is shown")
	}
}
