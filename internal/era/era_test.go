package era_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/era"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestMeta(t *testing.T) {
	text := string(must.Get(os.ReadFile("testdata/params.txt"))(t))
	for line := range strings.Lines(text[strings.Index(text, "\n")+1:]) {
		want, row, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		name, params, _ := strings.Cut(row, " | ")
		must.Equal(t, name, want == "true", era.Meta(json.RawMessage(params)) != nil)
	}
}

// TestVersions pins which clients a server can speak with.
func TestVersions(t *testing.T) {
	want := []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
	if got := era.Versions(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
