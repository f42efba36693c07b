package mcptool

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// TestShowToolIsShort checks the definition's length, since tools/list has a limit for
// all tools.
func TestShowToolIsShort(t *testing.T) {
	short := jsontext.Value(showTool)
	if err := short.Compact(); err != nil || len(short) > 700 {
		t.Errorf("%d bytes, %v", len(short), err)
	}
}

func TestFit(t *testing.T) {
	for _, text := range []string{"", "abc", strings.Repeat("x", 5000), strings.Repeat("\x00\x1b\"\\", 5000), strings.Repeat("é€😀", 3000), strings.Repeat("😀\x01", 3000)} {
		for _, most := range []int{30, 31, 32, 33, 34, 35, 1000, 1 << 20} {
			got := fit(text, most)
			rest := text[len(got):]
			_, size := utf8.DecodeRuneInString(rest)
			if !strings.HasPrefix(text, got) || len(quote(nil, got)) > most || !utf8.ValidString(got) {
				t.Errorf("%d of %.10q: %d bytes", most, text, len(got))
			}
			if rest != "" && len(quote(nil, got+rest[:size])) <= most {
				t.Errorf("%d of %.10q: there is room for more than %d bytes", most, text, len(got))
			}
		}
	}
}

func TestParseURI(t *testing.T) {
	const id = "019aa1f8-0000-7000-8000-00000000abcd"
	for uri, want := range map[string]passage{
		"codex://threads/" + id + "/diff":                                {id, diffView, 0, 0},
		"codex://threads/" + strings.ToUpper(id) + "/diff":               {id, diffView, 0, 0},
		"codex://threads/x%2Fy/transcript?offset=12":                     {"x/y", transcriptView, 0, 12},
		"codex://threads/x/commands/7/output":                            {"x", outputView, 7, 0},
		"codex://threads/x/commands/7/output?offset=9223372036854775807": {"x", outputView, 7, 1<<63 - 1},
	} {
		got, ok := parseURI(uri)
		if !ok || got != want {
			t.Errorf("%s: %+v, %t", uri, got, ok)
		}
		if again, ok := parseURI(got.uri()); !ok || again != want {
			t.Errorf("%s: written as %s", uri, got.uri())
		}
	}
	for _, uri := range []string{
		"", "codex://threads/", "codex://threads//diff", "codex://threads/x", "codex://threads/x/", "codex://threads/x/diff/", "codex://threads/x/secrets",
		"codex://threads/x/diff?", "codex://threads/x/diff?offset=", "codex://threads/x/diff?offset=-1", "codex://threads/x/diff?offset=+1",
		"codex://threads/x/diff?offset=1&offset=2", "codex://threads/x/diff?offset=9223372036854775808", "codex://threads/x/diff#y", "codex://threads/%zz/diff",
		"codex://threads/x/commands/0/output", "codex://threads/x/commands/output", "codex://threads/x/commands/4294967297/output", "codex://threads/x/commands/x/output",
		"CODEX://threads/x/diff", "file:///etc/passwd", "codex://other/x/diff",
	} {
		if got, ok := parseURI(uri); ok {
			t.Errorf("%s is read as %+v", uri, got)
		}
	}
}
