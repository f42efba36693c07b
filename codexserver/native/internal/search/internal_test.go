package search

import (
	"slices"
	"strings"
	"testing"
)

// TestManyStarsEnd checks that a crafted .gitignore does not delay a search.
func TestManyStarsEnd(t *testing.T) {
	one, ok := parseRule(strings.Repeat("**/a/", 60) + "b")
	if !ok {
		t.Fatal("not a rule")
	}
	names := slices.Repeat([]string{"a"}, 400)
	if one.match(names, false) {
		t.Error("matched without a b")
	}
	if !one.match(append(names, "b"), false) {
		t.Error("did not match")
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

func FuzzRule(f *testing.F) {
	for _, s := range []string{"*.txt", "!/a/**/b/", `\#a\ `, "[!a", "**", "/", "a//b"} {
		f.Add(s, "d/e/f")
	}
	f.Fuzz(func(t *testing.T, line, path string) {
		one, ok := parseRule(line)
		if !ok || path == "" {
			return
		}
		one.match(strings.Split(path, "/"), true)
	})
}
