package codec

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// checkQuote compares appendQuote with jsontext.AppendQuote.
func checkQuote(t *testing.T, s string) {
	want, err := jsontext.AppendQuote(nil, s)
	got, ok := appendQuote(nil, s)
	if ok != (err == nil) || ok && string(got) != string(want) {
		t.Errorf("appendQuote(%q) = %s, %v; want %s, %v", s, got, ok, want, err)
	}
}

func TestAppendQuote(t *testing.T) {
	for c := range 256 {
		for at := range 18 { // around both ends of eight bytes
			text := []byte(strings.Repeat("a", 18))
			text[at] = byte(c)
			checkQuote(t, string(text))
		}
	}
	for _, s := range []string{"", "é", "日本語日本語日本語", "😀", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\ufffd", "a\x7fb\u2028<&>"} {
		checkQuote(t, s)
	}
}

func FuzzAppendQuote(f *testing.F) {
	f.Add("plain text", "\x00\x1f\" \\ \xff é 😀")
	f.Fuzz(func(t *testing.T, a, b string) {
		checkQuote(t, a)
		checkQuote(t, a+b)
	})
}
