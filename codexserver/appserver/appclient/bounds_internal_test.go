package appclient

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestUnknownMethods reports each once, at most a hundred of them, and little of a long one.
func TestUnknownMethods(t *testing.T) {
	var logged bytes.Buffer
	c := &Client{log: slog.New(slog.NewTextHandler(&logged, nil)), unknown: map[string]bool{}}
	for i := range 102 {
		for range 2 {
			c.warnUnknown("method", fmt.Sprintf("%0100d", i)+strings.Repeat("x", i))
		}
	}
	if n := strings.Count(logged.String(), "\n"); n != 100 || strings.Contains(logged.String(), "xx") {
		t.Errorf("%d lines: %.300s", n, logged.String())
	}
}

// TestParseVersion has versions, and what looks like one.
func TestParseVersion(t *testing.T) {
	for text, want := range map[string]Version{
		"1.2.3": {1, 2, 3}, " 0.118.0-alpha.3\n": {0, 118, 0},
		"1.2": {}, "1.2.3.4": {}, "": {}, "1..3": {}, "1.2.x": {}, "1.2.+-3": {}, "v1.2.3": {},
	} {
		if got, err := ParseVersion(text); got != want || (err == nil) != (want != Version{}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, n := range []string{"-1.2.3", "1.-2.3"} { // - begins what is not of the version
		if got, err := ParseVersion(n); err == nil {
			t.Errorf("%q: %v", n, got)
		}
	}
}

// TestWithdraw has requests that are withdrawn before and after they come.
func TestWithdraw(t *testing.T) {
	q := requests{open: map[jsonrpc.ID]context.CancelFunc{}, early: map[jsonrpc.ID]bool{}}
	stopped := 0
	stop := func() { stopped++ }
	early, late := mcptypes.IntID(1), mcptypes.IntID(2)
	q.withdraw(early)
	q.add(early, stop)
	q.add(late, stop)
	if stopped != 1 || len(q.early) != 0 {
		t.Errorf("%d stopped, %d are remembered", stopped, len(q.early))
	}
	q.withdraw(late)
	for i := range 2*maxEarly + 1 {
		q.withdraw(mcptypes.IntID(int64(i + 3)))
		if len(q.early) > maxEarly {
			t.Fatalf("%d ids are remembered", len(q.early))
		}
	}
	if stopped != 2 || len(q.open) != 2 || len(q.early) != 1 {
		t.Errorf("%d stopped, %d open, %d are remembered", stopped, len(q.open), len(q.early))
	}
}
