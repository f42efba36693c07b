package shellword_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/shellword"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// TestQuoteRecorded compares Quote with the output of the real server.
func TestQuoteRecorded(t *testing.T) {
	raw := must.Get(os.ReadFile("testdata/quote.json"))(t)
	var pairs []struct {
		Word  string `json:"word"`
		Shown string `json:"shown"`
	}
	must.OK(t, json.Unmarshal(raw, &pairs))
	if len(pairs) < 30 {
		t.Fatalf("only %d pairs", len(pairs))
	}
	for _, pair := range pairs {
		must.Equal(t, pair.Word, pair.Shown, shellword.Quote(pair.Word))
	}
}

// TestShow has words as a person reads them on Windows.
func TestShow(t *testing.T) {
	for want, words := range map[string][]string{
		`.\show.bat 'a b' 'it''s'`:        {`.\show.bat`, "a b", "it's"},
		`C:\work 'C:\Program Files\x' ''`: {`C:\work`, `C:\Program Files\x`, ""},
		`'$env:X' '@x' a@b 'x"&y' '^'`:    {"$env:X", "@x", "a@b", `x"&y`, "^"},
	} {
		must.Equal(t, fmt.Sprint(words), want, shellword.Show("windows", words...))
		must.Equal(t, fmt.Sprint(words), shellword.Join(words), shellword.Show("linux", words...))
	}
}

// pieces are what quoting has to handle.
var pieces = []string{"'", `"`, `\`, "$", "`", "!", "^", " ", "a", "B", "0", "/", "=", ",", "é", "漢", "*", "~", "#", "(", "&&", "{", "]", "%", ";", "|", "<", "-", "e\u0301", "\n", "\t", "\u202e"}

// TestJoinShell checks that a shell reads the words that were joined.
func TestJoinShell(t *testing.T) {
	testenv.NeedsPrograms(t, "sh")
	sh := must.Get(exec.LookPath("sh"))(t)
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 3000)
	for i := range words {
		var b strings.Builder
		for range r.IntN(7) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		words[i] = b.String()
	}
	for words := range slices.Chunk(words, 300) {
		line := shellword.Join(words)
		out := must.Get(exec.Command(sh, "-c", `printf '%s\0' `+line).Output())(t)
		got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if diff := cmp.Diff(words, got); diff != "" {
			t.Fatalf("a shell reads other words (-want +got):\n%s", diff)
		}
		if got, ok := shellword.Split(line); !ok || !slices.Equal(got, words) {
			t.Fatalf("Split: %q, %t, want %q", got, ok, words)
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, piece := range append(slices.Clone(pieces), "it's $x", "a'^b", "", "^'a") {
		f.Add(piece)
	}
	f.Fuzz(func(t *testing.T, word string) {
		words := []string{word, "x", word}
		if got, ok := shellword.Split(shellword.Join(words)); !ok || !slices.Equal(got, words) {
			t.Fatalf("%q is quoted as %s, which splits into %q, %t", word, shellword.Quote(word), got, ok)
		}
	})
}

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string // nil when Split returns false
	}{
		{"", []string{}},
		{"ls", []string{"ls"}},
		{"  ls   -a  ", []string{"ls", "-a"}},
		{"/bin/bash -lc 'touch a && echo b'", []string{"/bin/bash", "-lc", "touch a && echo b"}},
		{`/bin/bash -lc "'sh' '-c' 'x'"`, []string{"/bin/bash", "-lc", "'sh' '-c' 'x'"}},
		{`echo "a\"b" 'c'"d"e\ f`, []string{"echo", `a"b`, "cde f"}},
		{`echo "\$x \n"`, []string{"echo", `$x \n`}},
		{"echo '' \"\"", []string{"echo", "", ""}},
		{"echo 'line\nbreak'", []string{"echo", "line\nbreak"}},
		{"echo a#b #c\nd", []string{"echo", "a#b", "#c", "d"}},
		{"echo #c", []string{"echo", "#c"}},
		{"echo a\\\nb", []string{"echo", "ab"}},
		{"echo 'no end", nil},
		{`echo "no end`, nil},
		{`echo "no end\`, nil},
		{`echo \`, nil},
	} {
		got, ok := shellword.Split(test.line)
		if diff := cmp.Diff(test.want, got); diff != "" || ok != (test.want != nil) {
			t.Errorf("%q: %t (-want +got):\n%s", test.line, ok, diff)
		}
	}
}
