package elicit_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
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

// Words and how the real server showed them.
func TestQuoteRecorded(t *testing.T) {
	var pairs []struct{ Word, Shown string }
	readJSON(t, "testdata/quote.json", &pairs)
	if len(pairs) < 30 {
		t.Fatalf("only %d pairs", len(pairs))
	}
	for _, pair := range pairs {
		if got := elicit.QuoteCommand([]string{pair.Word}); got != pair.Shown {
			t.Errorf("%q: %s, want %s", pair.Word, got, pair.Shown)
		}
	}
}

// nasty are pieces that quoting has to do with.
var nasty = []string{"'", `"`, `\`, "$", "`", "!", "^", " ", "a", "B", "0", "/", "=", ",", "é", "漢", "*", "~", "#", "(", "&&", "{", "]", "%", ";", "|", "<", "-", "é"}

// hiding are pieces that a human would not see, or not where they are.
var hiding = []string{"\n", "\r", "\t", "\x00", "\x1b[2K", "\x7f", "\u0085", "\u009b", "\u00a0", "\u00ad", "\u061c", "\u200b", "\u200d", "\u200e", "\u200f",
	"\u2028", "\u2029", "\u202a", "\u202e", "\u2060", "\u2066", "\u2069", "\u2800", "\u3000", "\u3164", "\ufe0f", "\ufeff", "\U000e0041", "\U000e0100", "\u0301", "\xff", "\xc3", "\xed\xa0\x80"}

func randomWord(r *rand.Rand, pieces []string) string {
	var b strings.Builder
	for range r.IntN(7) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// What we show is what a shell would run.
func TestQuoteShell(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	argv := make([]string, 3000)
	for i := range argv {
		argv[i] = randomWord(r, append(slices.Clone(nasty), "\n", "\t", "\u202e"))
	}
	for words := range slices.Chunk(argv, 300) {
		out, err := exec.Command(sh, "-c", `printf '%s\0' `+elicit.QuoteCommand(words)).Output()
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if diff := cmp.Diff(words, got); diff != "" {
			t.Fatalf("a shell reads it otherwise (-want +got):\n%s", diff)
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, piece := range append(slices.Clone(nasty), "it's $x", "a'^b", "", "^'a") {
		f.Add(piece)
	}
	f.Fuzz(func(t *testing.T, word string) {
		shown := elicit.QuoteCommand([]string{word, "x", word})
		argv, err := unquote(shown)
		if err != nil {
			t.Fatalf("%q is shown as %s: %v", word, shown, err)
		}
		if diff := cmp.Diff([]string{word, "x", word}, argv); diff != "" {
			t.Fatalf("%q is shown as %s (-want +got):\n%s", word, shown, diff)
		}
	})
}
