package codexserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
)

// TestVerdict checks which ends of a peer are errors of its server.
func TestVerdict(t *testing.T) {
	fault := errors.New("a fault")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx  context.Context
		err  error
		want bool
	}{
		{t.Context(), nil, false},
		{t.Context(), fault, true},
		{ended, fault, false},
		{t.Context(), fmt.Errorf("write: %w", io.ErrClosedPipe), false},
		{t.Context(), &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}, false},
		{t.Context(), os.ErrClosed, false},
		{t.Context(), io.ErrUnexpectedEOF, true},
	} {
		if err := verdict(tt.ctx, tt.err); (err != nil) != tt.want || tt.want && !errors.Is(err, tt.err) {
			t.Errorf("%v: %v", tt.err, err)
		}
	}
}
