package text_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/internal/text"
)

func TestCuts(t *testing.T) {
	const fox, family = "🦊", "👩\u200d👧" // four bytes; four, three and four
	for _, tt := range []struct {
		s                 string
		n                 int
		head, tail, brief string
	}{
		{"", 0, "", "", ""},
		{"", -1, "", "", ""},
		{"abc", 4, "abc", "abc", "abc"},
		{"abc", 3, "abc", "abc", "abc"},
		{"abc", 2, "ab", "bc", "ab…"},
		{"abc", 0, "", "", "…"},
		{"abc", -1, "", "", "…"},
		{"éé", 1, "", "", "…"},
		{"éé", 2, "é", "é", "é…"},
		{"éé", 3, "é", "é", "é…"},
		{"€€", 2, "", "", "…"},
		{"€€", 5, "€", "€", "€…"},
		{fox + "a" + fox, 1, "", "", "…"},
		{fox + "a" + fox, 3, "", "", "…"},
		{fox + "a" + fox, 4, fox, fox, fox + "…"},
		{fox + "a" + fox, 5, fox + "a", "a" + fox, fox + "a…"},
		{fox + "a" + fox, 8, fox + "a", "a" + fox, fox + "a…"},
		{fox + "a" + fox, 9, fox + "a" + fox, fox + "a" + fox, fox + "a" + fox},
		{family, 7, "👩\u200d", "\u200d👧", "👩\u200d…"}, // a character here is a code point
		{"\uFFFD\uFFFD", 2, "", "", "…"},
		{"\uFFFD\uFFFD", 3, "\uFFFD", "\uFFFD", "\uFFFD…"},
		// Bytes that are not UTF-8 belong to no character.
		{"a\x80\x80\x80\x80b", 3, "a\x80\x80", "\x80\x80b", "a\x80\x80…"},
		{"\x80\x80\x80\x80\x80\x80", 4, "\x80\x80\x80\x80", "\x80\x80\x80\x80", "\x80\x80\x80\x80…"},
		{"\xf0\x9f\xa6a\xf0\x9f\xa6", 2, "\xf0\x9f", "\x9f\xa6", "\xf0\x9f…"},
		{"\xed\xa0\x80\xed\xa0\x80", 4, "\xed\xa0\x80\xed", "\x80\xed\xa0\x80", "\xed\xa0\x80\xed…"}, // surrogates
		{"\xc0\xaf\xff\xfe", 1, "\xc0", "\xfe", "\xc0…"},
		{"é\x80" + fox, 3, "é\x80", "", "é\x80…"},
		{"é\x80" + fox, 5, "é\x80", "\x80" + fox, "é\x80…"},
	} {
		must.Equal(t, fmt.Sprint("Head ", tt.s, tt.n), tt.head, text.Head(tt.s, tt.n))
		must.Equal(t, fmt.Sprint("Tail ", tt.s, tt.n), tt.tail, text.Tail(tt.s, tt.n))
		must.Equal(t, fmt.Sprint("Brief ", tt.s, tt.n), tt.brief, text.Brief(tt.s, tt.n))
	}
}

// TestAllCuts cuts every text of up to six of some bytes everywhere. The parts are as long as
// they can be, and drop nothing but a part of a character.
func TestAllCuts(t *testing.T) {
	texts := []string{""}
	for begin, length := 0, 0; length < 6; length++ {
		end := len(texts)
		for _, s := range texts[begin:end] {
			for _, b := range []string{"a", "\x80", "\x9f", "\xc3", "\xe2", "\xf0"} {
				texts = append(texts, s+b)
			}
		}
		begin = end
	}
	for _, s := range texts {
		for n := range len(s) + 1 {
			head, tail := text.Head(s, n), text.Tail(s, n)
			if len(head) > n || !strings.HasPrefix(s, head) || strings.ToValidUTF8(head, "") != strings.ToValidUTF8(s[:n], "") {
				t.Fatalf("Head(%q, %d) = %q", s, n, head)
			}
			if len(tail) > n || !strings.HasSuffix(s, tail) || strings.ToValidUTF8(tail, "") != strings.ToValidUTF8(s[len(s)-n:], "") {
				t.Fatalf("Tail(%q, %d) = %q", s, n, tail)
			}
			if utf8.ValidString(s) && !(utf8.ValidString(head) && utf8.ValidString(tail)) {
				t.Fatalf("%q, %d: %q or %q has a part of a character", s, n, head, tail)
			}
			if head != s[:n] && utf8.ValidString(s[len(head):n]) || tail != s[len(s)-n:] && utf8.ValidString(s[len(s)-n:len(s)-len(tail)]) {
				t.Fatalf("%q, %d: %q or %q is too short", s, n, head, tail)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"model", "mode", "approval_policy", "sandbox", "cd", "log", "lot"}
	for word, want := range map[string]string{
		"modle": "model", "modell": "model", "approval_polcy": "approval_policy", "aproval_polcy": "approval_policy", "aproval_poly": "", "sanbdox": "sandbox",
		"dc": "", "lgo": "log", "lox": "log", "lxo": "", "lo": "", "": "", "x": "", "sandboxes": "sandbox", "sandboxing": "",
	} {
		for range 8 {
			rand.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
			must.Equal(t, word, want, text.Nearest(word, slices.Values(words)))
		}
	}
}

func TestOr(t *testing.T) {
	for want, words := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		must.Equal(t, "words", want, text.Or(words))
	}
}

// TestHeadJSON shortens texts of all kinds to their longest beginning that fits.
func TestHeadJSON(t *testing.T) {
	for _, s := range []string{"", "abc", strings.Repeat("x", 5000), strings.Repeat("\x00\x1b\"\\", 5000), strings.Repeat("é€😀", 3000), strings.Repeat("😀\x01", 3000)} {
		for _, most := range []int{30, 31, 32, 33, 34, 35, 1000, 1 << 20} {
			got := text.HeadJSON(s, most)
			rest := s[len(got):]
			_, size := utf8.DecodeRuneInString(rest)
			if !strings.HasPrefix(s, got) || text.SizeJSON(got) > most || !utf8.ValidString(got) {
				t.Errorf("%d of %.10q: %d bytes", most, s, len(got))
			}
			if rest != "" && text.SizeJSON(got+rest[:size]) <= most {
				t.Errorf("%d of %.10q: there is room for more than %d bytes", most, s, len(got))
			}
		}
	}
}

func TestSecrets(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
		values         []string
	}{
		{"none", "a text", "a text", nil},
		{"whole", "wrong key key-123456!", "wrong key [redacted]!", []string{"key-123456"}},
		{"twice", "key-123456key-123456", "[redacted][redacted]", []string{"key-123456"}},
		{"one contains the others", "wrong key hunter1 hunter2 hunter2-static", "wrong key [redacted]", []string{"hunter1", "hunter2", "hunter1 hunter2 hunter2-static"}},
		{"the shorter first", "is key-123456-more", "is [redacted]", []string{"key-123456", "key-123456-more"}},
		{"they overlap", "abcdefghijkl", "[redacted]", []string{"abcdefgh", "efghijkl"}},
		{"with itself", "xabababababy", "x[redacted]y", []string{"ababab"}},
		{"a scheme", "no TOKEN-123, no Bearer TOKEN-123", "no [redacted], no [redacted]", []string{"Bearer TOKEN-123"}},
		{"the text is cut", "wrong key key-12", "wrong key [redacted]", []string{"key-123456"}},
		{"the cut leaves little", "wrong key key", "wrong key key", []string{"key-123456"}},
		{"too short", "a 1 is no secret", "a 1 is no secret", []string{"1", "", "v1 x"}},
	} {
		must.Equal(t, tt.name, tt.want, text.NewSecrets(tt.values...).Hide(tt.in))
	}
}
