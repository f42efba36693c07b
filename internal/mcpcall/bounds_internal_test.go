package mcpcall

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

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
