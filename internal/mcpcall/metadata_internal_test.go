package mcpcall

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// TestMetadata checks what a client declares in each request: questions only if somebody answers them, and
// tasks only where the caller can wait for one.
func TestMetadata(t *testing.T) {
	for _, asks := range []bool{false, true} {
		for _, tasks := range []bool{false, true} {
			s := &Session{o: Options{Name: "n", Version: "v", Extensions: []string{"x/y"}}}
			if asks {
				s.o.Ask = func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }
			}
			text, err := json.Marshal(s.metadata(tasks, "token"))
			if err != nil {
				t.Fatal(err)
			}
			for words, want := range map[string]bool{
				`"elicitation":{}`: asks, `"io.modelcontextprotocol/tasks":{}`: tasks, `"x/y":{}`: true, `"progressToken":"token"`: true, `"name":"n"`: true, `"version":"v"`: true,
			} {
				if strings.Contains(string(text), words) != want {
					t.Errorf("asks %t, tasks %t: %s, %s: want %t", asks, tasks, text, words, want)
				}
			}
		}
	}
}
