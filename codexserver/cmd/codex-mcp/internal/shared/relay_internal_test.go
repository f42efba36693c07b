package shared

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestSent keeps requests, and nothing else that a client may send.
func TestSent(t *testing.T) {
	var open sync.Map
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/sent.txt"))(t))) {
		sent(&open, []byte(line))
	}
	var got []string
	for id := range open.Range {
		got = append(got, fmt.Sprint(id))
	}
	slices.Sort(got)
	must.Equal(t, "result", []string{`"x\"}"`, "1", "14", "6"}, got)
}
