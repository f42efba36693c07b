package terminal_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/google/go-cmp/cmp"
)

func TestFold(t *testing.T) {
	for _, tt := range []struct {
		line  string
		limit int
		words bool
		want  []string
	}{
		{"", 10, false, []string{""}},
		{"as long as it is", 0, true, []string{"as long as it is"}},
		{"exactly 10", 10, true, []string{"exactly 10"}},
		{"one two three", 8, true, []string{"one two", "three"}},
		{"one two three", 7, true, []string{"one two", "three"}},
		{"one two three", 8, false, []string{"one two ", "three"}},
		{"abcdefghij", 4, true, []string{"abcd", "efgh", "ij"}},
		{"    indented", 6, true, []string{"    in", "dented"}},
		{"a\tb", 9, false, []string{"a       b"}},
		{"日本語です", 4, false, []string{"日本", "語で", "す"}},
		{"\u2705\u274c\u2b50\u26a1\U0001f197", 4, false, []string{"\u2705\u274c", "\u2b50\u26a1", "\U0001f197"}},
		{"\u2713\u2717\u25b8\u2502", 4, false, []string{"\u2713\u2717\u25b8\u2502"}},
		{"e\u0301e\u0301e\u0301", 2, false, []string{"e\u0301e\u0301", "e\u0301"}},
	} {
		if diff := cmp.Diff(tt.want, terminal.Fold(tt.line, tt.limit, tt.words)); diff != "" {
			t.Errorf("%q at %d (-want +got):\n%s", tt.line, tt.limit, diff)
		}
	}
}

func TestFlow(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string
	}{
		{"short\n", "short\n"},
		{"one two three four five six", "one two three four\nfive six\n"},
		{"- an item of a list that goes on\n- next", "- an item of a list\n  that goes on\n- next\n"},
		{"  12. an item deeper in", "  12. an item deeper\n      in\n"},
		{"a_word_that_is_longer_than_the_line is", "a_word_that_is_longe\nr_than_the_line is\n"},
		{"日本語は空白なしで書かれます", "日本語は空白なしで書\nかれます\n"},
		{"warning \u26a0\ufe0f here", "warning \u26a0 here\n"},
		{"\n\nafter", "\n\nafter\n"},
		{"trailing   \nspaces", "trailing\nspaces\n"},
	} {
		if got := terminal.Flow(20, tt.text); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestOutput(t *testing.T) {
	for _, tt := range []struct {
		chunks []string
		want   []string
	}{
		{[]string{"a\nb"}, []string{"a", "b"}},
		{[]string{"a\r", "\nb\r\n"}, []string{"a", "b"}},
		{[]string{"10%\r20%\r", "30%"}, []string{"10%", "20%", "30%"}},
		{[]string{"\n\n"}, []string{"", ""}},
		{[]string{strings.Repeat("x", 70_000)}, []string{strings.Repeat("x", 65_536), strings.Repeat("x", 70_000-65_536)}},
	} {
		var chunks [][]byte
		for _, c := range tt.chunks {
			chunks = append(chunks, []byte(c))
		}
		if diff := cmp.Diff(tt.want, terminal.Output(chunks...)); diff != "" {
			t.Errorf("%.80q (-want +got):\n%s", tt.chunks, diff)
		}
	}
}

func TestFigures(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1: "-1", -100000: "-100,000"} {
		if got := terminal.Thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	for d, want := range map[time.Duration]string{0: "0 ms", 999 * time.Millisecond: "999 ms", 1500 * time.Millisecond: "1.5 s", 125 * time.Second: "2 min 5 s"} {
		if got := terminal.Took(d); got != want {
			t.Errorf("%v: %s", d, got)
		}
	}
}

// TestStandardWithoutTerminal uses files instead of a terminal.
func TestStandardWithoutTerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := terminal.Standard(f, f, &bytes.Buffer{}, func(string) string { return "xterm" })
	if c.Keys != nil || c.OutTerminal || c.ErrTerminal || c.Color || c.Moves {
		t.Errorf("%+v", c)
	}
}

// FuzzShown shows any text as the output of a program and of a model, in two pieces. The result
// must not have anything that a terminal interprets, and must not depend on the cut.
func FuzzShown(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[31mred\x1b[0m", "\x1b]8;;http://x\x07link", "a\rb", "\u202eback", "\xff\x9b", "日本\u0301 e\u0301\n- x y", "\x1b", "tab\tbed"} {
		f.Add([]byte(s), 1, 20)
	}
	f.Fuzz(func(t *testing.T, b []byte, at, columns int) {
		if columns < 0 || columns > 200 || at < 0 {
			return
		}
		at = min(at, len(b))
		whole := terminal.Output(b)
		if diff := cmp.Diff(whole, terminal.Output(b[:at], b[at:])); diff != "" {
			t.Errorf("cut at %d (-whole +cut):\n%s", at, diff)
		}
		for _, line := range whole {
			shown := terminal.ShowOutput(line)
			harmless(t, shown)
			rows := terminal.Fold(shown, columns, at%2 == 0)
			for _, row := range rows {
				if columns > 1 && terminal.Width(row) > columns {
					t.Errorf("row %q is wider than %d", row, columns)
				}
			}
		}
		text := []rune(strings.ToValidUTF8(string(b), "?")) // as JSON brings it
		at = min(at, len(text))
		flowed := terminal.Flow(columns, string(text))
		harmless(t, flowed)
		if cut := terminal.Flow(columns, string(text[:at]), string(text[at:])); cut != flowed {
			t.Errorf("cut at %d: %q, whole %q", at, cut, flowed)
		}
	})
}

func harmless(t *testing.T, shown string) {
	t.Helper()
	for _, r := range shown {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Errorf("%q has %U", shown, r)
		}
	}
}

// FuzzJSONLine writes any string as a JSON line. The line must mean the same, and must not have
// anything that a terminal interprets.
func FuzzJSONLine(f *testing.F) {
	f.Add("right\u202eleft \u009b \U000e0001 \U0001f600 é \\ \" \n")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		raw, err := json.Marshal(map[string]string{"text": s})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		terminal.JSONLine(&b, raw)
		line, ok := strings.CutSuffix(b.String(), "\n")
		if !ok || strings.Contains(line, "\n") {
			t.Fatalf("no line: %q", b.String())
		}
		harmless(t, line)
		var back map[string]string
		if err := json.Unmarshal([]byte(line), &back); err != nil || back["text"] != s {
			t.Errorf("%q became %q: %v", s, back["text"], err)
		}
	})
}
