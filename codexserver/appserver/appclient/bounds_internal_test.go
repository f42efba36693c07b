package appclient

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
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
