package search

import (
	"reflect"
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

func TestParseRule(t *testing.T) {
	for _, tt := range []struct {
		line string
		want rule
		ok   bool
	}{
		{"a \t  \r\n", rule{pattern: "a \t", anywhere: true}, true},
		{`a\ ` + "\n", rule{pattern: `a\ `, anywhere: true}, true},
		{"!a/", rule{pattern: "a", keep: true, dirOnly: true, anywhere: true}, true},
		{"/a/[!b]", rule{pattern: "a/[!b]"}, true},
		{`a{b\{c`, rule{pattern: `a\{b\{c`, anywhere: true}, true}, {"a/**", rule{pattern: "a/**/*"}, true},
		{"/a", rule{pattern: "a"}, true},
		{"", rule{}, false}, {"  \n", rule{}, false}, {"#a", rule{}, false},
	} {
		if got, ok := parseRule(tt.line); !reflect.DeepEqual(got, tt.want) || ok != tt.ok {
			t.Errorf("%q: %+v, %t", tt.line, got, ok)
		}
	}
	for _, line := range []string{"!", "/", "!/"} {
		if _, ok := parseRule(line); ok {
			t.Errorf("%q is a rule", line)
		}
	}
}

// TestRules checks which line decides: the last one that matches, of the innermost folder. A mark of the byte order
// belongs to no line, as in git.
func TestRules(t *testing.T) {
	outer := (*Rules)(nil).parse([]byte("\uFEFFa\n*.log\n!keep.log\nb/\n"), 0)
	inner := outer.parse([]byte("!a\nkeep.log\n"), 1)
	for _, tt := range []struct {
		rules *Rules
		path  string
		isDir bool
		want  bool
	}{
		{nil, "a", false, false},
		{outer, "a", false, true}, {outer, "c", false, false},
		{outer, "x.log", false, true}, {outer, "keep.log", false, false},
		{outer, "b", true, true}, {outer, "b", false, false},
		{inner, "d/a", false, false}, {inner, "d/keep.log", false, true}, {inner, "d/x.log", false, true},
	} {
		if got := tt.rules.Ignores(strings.Split(tt.path, "/"), tt.isDir); got != tt.want {
			t.Errorf("%s (a folder: %t): %t", tt.path, tt.isDir, got)
		}
	}
}
