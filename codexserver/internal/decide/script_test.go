package decide_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	word := func(text string) decide.Word { return decide.Word{Text: text} }
	for _, tt := range []struct {
		text string
		want [][]decide.Word // nil when the script is more than plain words
	}{
		{"ls -l", [][]decide.Word{{word("ls"), word("-l")}}},
		{"a && b || c | d; e", [][]decide.Word{{word("a")}, {word("b")}, {word("c")}, {word("d")}, {word("e")}}},
		{`echo 'a b' "c d"`, [][]decide.Word{{word("echo"), word("a b"), word("c d")}}},
		{`echo a\ b "c\"d"`, [][]decide.Word{{word("echo"), {Text: "a b"}, {Text: `c"d`}}}},
		{"ls *.go ~", [][]decide.Word{{word("ls"), {Text: "*.go", Open: true}, {Text: "~", Open: true}}}},
		{"", nil}, {"a # c", nil}, {"a &", nil}, {"a > b", nil}, {"A=1 a", nil}, {"echo $A", nil}, {"echo $'a'", nil}, {"echo a'b'", nil},
		{"'a' b", nil}, {"(a)", nil}, {"a 'b", nil},
	} {
		got, ok := decide.ParseScript(tt.text)
		if diff := cmp.Diff(tt.want, got); diff != "" || ok != (tt.want != nil) {
			t.Errorf("%q: %t (-want +got):\n%s", tt.text, ok, diff)
		}
	}
}

// TestLimit has scripts that need much stack for each byte. The parser must fail before it
// has read them. Long scripts without nesting are parsed.
func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		repeat string
		limit  bool
	}{
		{"(", true}, {"((", true}, {"((-", true}, {"{ ", true}, {"$(", true}, {"\"$(", true}, {"<(", true}, {"$[", true}, {"${a:-", true},
		{"a[", true}, {"if ", true}, {"time ", true}, {"f() ", true}, {"(a); ", false}, {"$(a) ", false}, {"{ a; }\n", false},
		{"if a; then b; fi; ", false},
	} {
		text := strings.Repeat(tt.repeat, decide.MaxScript/len(tt.repeat))
		if _, err := decide.ParseFile(text); errors.Is(err, decide.ErrScript) != tt.limit || err != nil && !tt.limit {
			t.Errorf("%q: %v, want the limit: %t", tt.repeat, err, tt.limit)
		}
		var last error
		for _, err := range decide.Statements(text) {
			last = err
		}
		if errors.Is(last, decide.ErrScript) != tt.limit {
			t.Errorf("%q: the statements end with %v, want the limit: %t", tt.repeat, last, tt.limit)
		}
	}
	nested := strings.Repeat("( ", 100) + "a" + strings.Repeat(" )", 100)
	if _, err := decide.ParseFile(nested); err != nil {
		t.Errorf("a hundred subshells in each other: %v", err)
	}
	long := "a <<'EOF'\n" + strings.Repeat("((((\n", decide.MaxScript/5-3) + "EOF\n"
	if _, err := decide.ParseFile(long); err != nil {
		t.Errorf("a long here-document: %v", err)
	}
}
