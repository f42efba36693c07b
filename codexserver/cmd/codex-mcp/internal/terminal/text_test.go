package terminal_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/google/go-cmp/cmp"
)

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
	if c.Keys != nil || c.OutTerminal || c.ErrTerminal || c.Color {
		t.Errorf("%+v", c)
	}
}

// FuzzShown shows any text as the output of a program and as a text of a model. What is shown
// must not have anything that a terminal interprets, or the mark of a question.
func FuzzShown(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[31mred\x1b[0m", "\x1b]8;;http://x\x07link", "a\rb", "\u202eback", "\xff\x9b", "日本\u0301 e\u0301\n- x y", "\x1b", "tab\tbed", "◆ Allow?"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		text := strings.ToValidUTF8(string(b), "?") // as JSON brings it
		for line := range strings.SplitSeq(terminal.ShowProse(text)+"\n"+terminal.ShowOutput(string(b)), "\n") {
			shown := terminal.ScreenLine(line)
			harmless(t, shown)
			if strings.ContainsAny(shown, "\t◆") {
				t.Errorf("%q is shown as %q", line, shown)
			}
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

// TestKeysOfThePage compares the keys of a question with those of the approvals page, in its script and
// in its list: who has learned one must not do something else on the other.
func TestKeysOfThePage(t *testing.T) {
	same := map[string]struct{ terminal, script, page string }{
		"y": {"once", `decide(q, { action: "accept" })`, "approve once"},
		"a": {"for this session", `"approved_for_session"`, "approve for the session"},
		"w": {"always", `always(q)`, "always allow what the rule says"},
		"n": {"deny", `deny`, "deny"},
		"d": {"deny and say why", `q.word.focus()`, "deny: write a note to the agent, then <kbd>Enter</kbd>"},
		"s": {"stop", `stopTurn`, "stop the turn"},
	}
	read := func(name string) string {
		raw, err := os.ReadFile("../../../../page/web/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	_, script, _ := strings.Cut(read("page.js"), "const keys = {\n")
	script, _, _ = strings.Cut(script, "\n};")
	bound := map[string]string{}
	for line := range strings.Lines(script) {
		key, act, _ := strings.Cut(strings.TrimSpace(line), ": ")
		bound[key] = act
	}
	listed := map[string]string{}
	for _, m := range regexp.MustCompile(`<dt><kbd>(.)</kbd></dt><dd>(.*)</dd>`).FindAllStringSubmatch(read("page.html"), -1) {
		listed[m[1]] = m[2]
	}
	terminals, pages := map[string]string{}, map[string]string{}
	for key, does := range same {
		terminals[key], pages[key] = does.terminal, does.page
		if !strings.Contains(bound[key], does.script) {
			t.Errorf("%s does %q on the page, not %s", key, bound[key], does.script)
		}
	}
	if diff := cmp.Diff(terminals, terminal.Keys()); diff != "" {
		t.Errorf("terminal (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(pages, listed); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	for key := range bound {
		if _, known := same[key]; !known && !slices.Contains([]string{"j", "k", `"?"`}, key) {
			t.Errorf("only the page has the key %s", key)
		}
	}
}
