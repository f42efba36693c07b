package repo

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
		{"a \t  \r\n", rule{segments: []string{"a \t"}, anywhere: true}, true},
		{`a\ ` + "\n", rule{segments: []string{`a\ `}, anywhere: true}, true},
		{"!a/", rule{segments: []string{"a"}, keep: true, dirOnly: true, anywhere: true}, true},
		{"/a/[!b]", rule{segments: []string{"a", "[^b]"}}, true},
		{"/a", rule{segments: []string{"a"}}, true},
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
