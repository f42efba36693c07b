package search

import (
	"slices"
	"strings"
	"testing"
)

// TestLetters has the classes and the plain letters at the ends of their ranges.
func TestLetters(t *testing.T) {
	for class, letters := range map[class]string{
		classSpace: " \t\u2003", classMark: "@`{[\x7f\u0080…", classDelimiter: "/,:;|", classLower: "azé", classUpper: "AZÉ", classLetter: "語", classDigit: "09٣½",
	} {
		for _, r := range letters {
			if got := classOf(r); got != class {
				t.Errorf("%q: class %d, want %d", r, got, class)
			}
		}
	}
	for _, tt := range []struct{ letters, plain string }{{"À×ÿž", "A×yz"}, {"¿ſaZ語", "¿ſaZ語"}} {
		if got := strings.Map(plainLetter, tt.letters); got != tt.plain {
			t.Errorf("%s: %s, want %s", tt.letters, got, tt.plain)
		}
	}
}

func TestBonus(t *testing.T) {
	for _, tt := range []struct {
		before, now class
		want        int
	}{
		{classSpace, classLower, bonusSpace}, {classSpace, classDelimiter, 0}, {classDelimiter, classLetter, bonusDelimiter}, {classDelimiter, classDelimiter, 0},
		{classMark, classDigit, bonusBoundary}, {classMark, classMark, bonusBoundary}, {classLower, classMark, bonusBoundary}, {classLower, classSpace, bonusSpace},
		{classLower, classUpper, bonusCamel}, {classUpper, classUpper, 0}, {classUpper, classLower, 0}, {classUpper, classDigit, bonusCamel}, {classDigit, classDigit, 0},
		{classLower, classDelimiter, 0},
	} {
		if got := bonus(tt.before, tt.now); got != tt.want {
			t.Errorf("%d after %d: %d, want %d", tt.now, tt.before, got, tt.want)
		}
	}
}

// TestCells checks the bound on the memory of a match.
func TestCells(t *testing.T) {
	query := parsePattern(strings.Repeat("a", 1024))
	if _, ok := query.match(strings.Repeat("a", 1024), nil); !ok {
		t.Error("a pair of the largest size does not match")
	}
	if _, ok := query.match(strings.Repeat("a", 1025), nil); ok {
		t.Error("a larger pair matches")
	}
}

func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{{"abe", "dir/abe.go"}, {"foo bar", "src/FooBar.go"}, {"é", "Über é"}, {`a\ b`, "a b"}, {"K", "\u212a"}, {"/", "//"}, {"\xff", "a\xff"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, query, path string) {
		if len(path) > 500 || len(query) > 500 {
			return
		}
		p := parsePattern(query)
		indices := []uint32{}
		score, ok := p.match(path, &indices)
		again, okAgain := p.match(path, nil)
		if ok != okAgain || again != score {
			t.Fatalf("%d %v with places, %d %v without", score, ok, again, okAgain)
		}
		if !ok {
			return
		}
		letters, longest := 0, 0
		for _, w := range p.words {
			letters += len(w.runes)
			longest = max(longest, len(w.runes))
		}
		if score < scoreMatch*len(p.words) {
			t.Errorf("score %d for %d words", score, len(p.words))
		}
		if len(indices) < longest || len(indices) > letters || !slices.IsSorted(indices) {
			t.Fatalf("places %v for %d letters", indices, letters)
		}
		runes := []rune(path)
		var found []rune
		for _, i := range indices {
			found = append(found, runes[i])
		}
		if len(p.words) == 1 { // the places spell the word
			w := &p.words[0]
			p.hay.set(string(found))
			if got := string(p.hay.fold(w)); got != string(w.runes) {
				t.Errorf("the positions of %q in %q spell %q", query, path, got)
			}
		}
	})
}
