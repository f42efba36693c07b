package approval_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// nasty are pieces that quoting must handle.
var nasty = []string{"'", `"`, `\`, "$", "`", "!", "^", " ", "a", "B", "0", "/", "=", ",", "é", "漢", "*", "~", "#", "(", "&&", "{", "]", "%", ";", "|", "<", "-", "é"}

// hiding are pieces that a human would not see, or would see in the wrong place.
var hiding = []string{"\n", "\r", "\t", "\x00", "\x1b[2K", "\x7f", "\u0085", "\u009b", "\u00a0", "\u00ad", "\u061c", "\u200b", "\u200d", "\u200e", "\u200f",
	"\u2028", "\u2029", "\u202a", "\u202e", "\u2060", "\u2066", "\u2069", "\u2800", "\u3000", "\u3164", "\ufe0f", "\ufeff", "\U000e0041", "\U000e0100", "\u0301", "\xff", "\xc3", "\xed\xa0\x80"}

func randomWord(r *rand.Rand, pieces []string) string {
	var b strings.Builder
	for range r.IntN(7) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}
