package approval_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/shellword"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/google/go-cmp/cmp"
)

func TestMayAsk(t *testing.T) {
	ctx := t.Context()
	without := approval.WithoutQuestions(ctx)
	below, cancel := context.WithCancel(without)
	cancel()
	if !approval.MayAsk(ctx) || approval.MayAsk(without) || approval.MayAsk(below) {
		t.Errorf("%t, %t, %t", approval.MayAsk(ctx), approval.MayAsk(without), approval.MayAsk(below))
	}
}

// The real server's sentence for each recorded command is the expected one.
func TestExecRecorded(t *testing.T) {
	var recorded []struct {
		Command      []string
		Cwd, Message string
	}
	readJSON(t, "testdata/messages.json", &recorded)
	if len(recorded) < 20 {
		t.Fatalf("only %d messages", len(recorded))
	}
	for _, r := range recorded {
		q := question(approval.Command{Command: r.Command, Cwd: r.Cwd})
		if q.Older != r.Message || q.Once {
			t.Errorf("%q, once %v, want %q", q.Older, q.Once, r.Message)
		}
	}
}

// TestExecMessage has commands, what is asked about them, and what an approved one may touch. The sentence that old clients
// know stays alone where there is no sandbox to leave: only places that show more than the message show the reach then.
func TestExecMessage(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Quotes)
	long := strings.Repeat("x", 5000) + "\ny\nz"
	for _, tt := range []struct {
		name string
		exec approval.Command
		want string
	}{
		{"everything", approval.Command{
			Asker: "Robot", Command: []string{"ls", "-l"}, Cwd: "/w", LeavesSandbox: true,
			Notes: []string{"A sub-agent asks."}, Reason: "need to write",
		}, "Allow Robot to run `ls -l` in `/w`?\nIf approved, it runs outside the sandbox, once: files and network are open.\nA sub-agent asks.\n" +
			`Reason given by the model: "need to write"`},
		{"outside", approval.Command{Command: []string{"ls"}, Cwd: "/w", LeavesSandbox: true},
			"Allow Codex to run `ls` in `/w`?\nIf approved, it runs outside the sandbox, once: files and network are open."},
		{"reading", approval.Command{Command: []string{"read", "/x"}, Cwd: "/w", LeavesSandbox: true, Reads: true},
			"Allow Codex to run `read /x` in `/w`?\nIf approved, it reads outside of the working folder, once."},
		{"no sandbox", approval.Command{Command: []string{"ls"}, Cwd: "/w", NoSandbox: true}, "Allow Codex to run `ls` in `/w`?"},
		{"a model that says so", approval.Command{Command: []string{"ls"}, Cwd: "/w", NoSandbox: true, Reason: "x\nIf approved, it runs in the sandbox."},
			"Allow Codex to run `ls` in `/w`?\nReason given by the model: `\"x\\nIf approved, it runs in the sandbox.\"`"},
		{"a tip", approval.Command{Command: []string{"ls"}, Cwd: "/w", Tip: "Try this."}, "Allow Codex to run `ls` in `/w`?\nTry this."},
		{"line breaks", approval.Command{Command: []string{"echo", "hi` in `/w`?\nAllow Codex to run `ls", "a\r\tb"}, Cwd: "/w"},
			"Allow Codex to run ``echo $'hi` in `/w`?\\nAllow Codex to run `ls' $'a\\r\\tb'`` in `/w`?"},
		{"terminal escapes", approval.Command{Command: []string{"echo", "\x1b[2Kls\x7f\u009b1m\x00"}, Cwd: "/w"},
			"Allow Codex to run `echo $'\\x1b[2Kls\\x7f\\u{9b}1m\\x00'` in `/w`?\n(contains hidden characters)"},
		{"direction", approval.Command{Command: []string{"cat", "a\u202etxt.sh", "it's\u200b", "\\\u2066"}, Cwd: "/w"},
			"Allow Codex to run `cat $'a\\u{202e}txt.sh' $'it\\'s\\u{200b}' $'\\\\\\u{2066}'` in `/w`?\n(contains hidden characters)"},
		{"invisible letters", approval.Command{Command: []string{"\u3164", "\u2800", "x\ufe0f", "\U000e0041", "\u00a0"}, Cwd: "/w"},
			"Allow Codex to run `$'\\u{3164}' $'\\u{2800}' $'x\\u{fe0f}' $'\\u{e0041}' $'\\u{a0}'` in `/w`?\n(contains hidden characters)"},
		{"marks", approval.Command{Command: []string{"e\u0301", "\u0301e", "- \u0338"}, Cwd: "/w"},
			"Allow Codex to run `'e\u0301' $'\\u{301}e' $'- \\u{338}'` in `/w`?\n(contains hidden characters)"},
		{"not UTF-8", approval.Command{Command: []string{"a\xffb\ufffd"}, Cwd: "/w"},
			"Allow Codex to run `$'a\\xffb\ufffd'` in `/w`?"},
		{"fence", approval.Command{Command: []string{"sh", "-c", "echo `id` ``x``"}, Cwd: "/w"},
			"Allow Codex to run ```sh -c 'echo `id` ``x``'``` in `/w`?"},
		{"no command", approval.Command{Cwd: "/w"}, "Allow Codex to run `''` in `/w`?"},
		{"plain folder", approval.Command{Command: []string{"ls"}, Cwd: `C:\My Work\naïve's "x"`}, "Allow Codex to run `ls` in `C:\\My Work\\naïve's \"x\"`?"},
		{"no folder", approval.Command{Command: []string{"ls"}}, "Allow Codex to run `ls` in `''`?"},
		{"deceptive folder", approval.Command{Command: []string{"ls"}, Cwd: "/w`? Already approved.\n"},
			"Allow Codex to run `ls` in ``$'/w`? Already approved.\\n'``?"},
		{"folder with a backtick", approval.Command{Command: []string{"ls"}, Cwd: "/w`? Approved. `/w"}, "Allow Codex to run `ls` in ``'/w`? Approved. `/w'``?"},
		{"folder like a quoted one", approval.Command{Command: []string{"ls"}, Cwd: `$'\n'`}, "Allow Codex to run `ls` in `'$'\"'\\\\n'\"`?"},
		{"folder with blanks around", approval.Command{Command: []string{"ls"}, Cwd: " /w "}, "Allow Codex to run `ls` in `' /w '`?"},
		{"hidden in the folder", approval.Command{Command: []string{"ls"}, Cwd: "/w\u200b"},
			"Allow Codex to run `ls` in `$'/w\\u{200b}'`?\n(contains hidden characters)"},
		{"hidden in a note", approval.Command{Command: []string{"ls"}, Cwd: "/w", Notes: []string{"It is /w/\u200bls."}},
			"Allow Codex to run `ls` in `/w`?\nIt is /w/\\u{200b}ls. (contains hidden characters)"},
		{"deceptive reason", approval.Command{Command: []string{"ls"}, Cwd: "/w", Reason: "x\"\nApproved by the \"admin\" \u202e"},
			"Allow Codex to run `ls` in `/w`?\nReason given by the model: `\"x\\\"\\nApproved by the \\\"admin\\\" \\u{202e}\"` (contains hidden characters)"},
		{"reason with markup", approval.Command{Command: []string{"ls"}, Cwd: "/w", Reason: "![x](https://example.com/`)"},
			"Allow Codex to run `ls` in `/w`?\nReason given by the model: ``\"![x](https://example.com/`)\"``"},
		{"hidden in a note", approval.Command{Command: []string{"ls"}, Cwd: "/w", Notes: []string{"a\nb\u200b"}},
			"Allow Codex to run `ls` in `/w`?\na\\nb\\u{200b} (contains hidden characters)"},
		{"long", approval.Command{Command: []string{"echo", long}, Cwd: "/w"},
			"The command is not shown whole: it has 5,014 characters in 3 lines.\nAllow Codex to run `echo $'" + strings.Repeat("x", 1500-7) + "… (3,214 characters hidden) …" + strings.Repeat("x", 300-7) + "\\ny\\nz'` in `/w`?"},
	} {
		q := question(tt.exec)
		must.Equal(t, tt.name, tt.want, q.Message)
		reach := ""
		if tt.exec.Reads {
			reach = "If approved, it reads outside of the working folder, once."
		} else if tt.exec.LeavesSandbox {
			reach = "If approved, it runs outside the sandbox, once: files and network are open."
		} else if tt.exec.NoSandbox {
			reach = "If approved, it runs once, without a sandbox: files and network are open."
		}
		if q.Reach != reach {
			t.Errorf("%s: reach %q, want %q", tt.name, q.Reach, reach)
		}
		if q.Once != (tt.name == "long") {
			t.Errorf("%s: once %v", tt.name, q.Once)
		}
		where := "" // of the rest
		if q.Once {
			where = "\nAll of it is on the page."
		}
		asked := q.For(elicit.Client{Name: "a client"}, &elicit.Options{Elsewhere: "on the page"})
		must.Equal(t, fmt.Sprintf("%s, asked", tt.name), tt.want+where, asked.Message)
	}
}

// TestExecWritten asks about one plain command of a script without the shell, but as ever where programs read the sentence.
func TestExecWritten(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Quotes)
	for script, want := range map[string]string{
		"npm publish":         "npm publish",
		`git commit -m "a b"`: "git commit -m 'a b'",
		"npm publish; true":   "bash -lc 'npm publish; true'",
		"A=1 npm publish":     "bash -lc 'A=1 npm publish'",
	} {
		q := question(approval.Command{Command: []string{"bash", "-lc", script}, Cwd: "/w"})
		whole := elicit.ShowCommand([]string{"bash", "-lc", script})
		for version, shown := range map[string]string{"2025-06-18": whole, "2025-11-25": want, "2026-07-28": want} {
			asked := q.For(elicit.Client{ProtocolVersion: version}, nil)
			must.Equal(t, version, "Allow Codex to run `"+shown+"` in `/w`?", asked.Message)
		}
	}
}

func TestPatchMessage(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Paths)
	many := make([]approval.Change, 1042)
	var listed strings.Builder
	for i := range many {
		many[i] = approval.Change{Kind: "delete", Path: fmt.Sprint("f", i)}
		if i < 40 {
			fmt.Fprintf(&listed, "- delete `f%d`\n", i)
		}
	}
	var added []approval.Change
	var addedLines []string
	for i := range 45 {
		added = append(added, approval.Change{Kind: "add", Path: fmt.Sprint("f", i)})
		addedLines = append(addedLines, fmt.Sprintf("- add `f%d`\n", i))
	}
	const sentence = "Allow Codex to apply proposed code changes?"
	for _, tt := range []struct {
		name  string
		patch approval.PatchForm
		want  string
	}{
		{"bare", approval.PatchForm{}, sentence},
		{"everything", approval.PatchForm{
			Asker: "Robot", Reason: "tidy up", Cwd: "/w", Notes: []string{"A sub-agent asks."},
			Changes: []approval.Change{
				{Kind: "add", Path: "a.txt", Added: 2},
				{Kind: "update", Path: "/w/b.go", MoveTo: "c.go", Added: 3, Removed: 1},
				{Kind: "delete", Path: "d e.txt"},
			},
		}, `Reason given by the model: "tidy up"` + "\nAllow Robot to apply proposed code changes?\n" +
			"- delete `d e.txt`\n- add `a.txt` (+2 -0)\n- update `/w/b.go` and move it to `c.go` (+3 -1)\n" +
			"A sub-agent asks."},
		{"deceptive paths", approval.PatchForm{Cwd: "/w", Changes: []approval.Change{
			{Kind: "add", Path: "src/../../etc/passwd"}, {Kind: "add", Path: "/w/../etc/passwd"},
			{Kind: "add", Path: "/w2/x", MoveTo: "../x"}, {Kind: "add\n", Path: "a`\n\u202e"}, {Kind: "add", Path: "..x/y"},
		}}, sentence + "\n- add `../etc/passwd` (outside the workspace)\n- add `/etc/passwd` (outside the workspace)\n" +
			"- add `/w2/x` (outside the workspace) and move it to `../x` (outside the workspace)\n" +
			"- add\\n ``$'a`\\n\\u{202e}'`` (contains hidden characters)\n- add `..x/y`"},
		{"workspace that is not a path", approval.PatchForm{Cwd: "w", Changes: []approval.Change{{Kind: "add", Path: "/w/x"}}},
			sentence + "\n- add `/w/x` (outside the workspace)"},
		{"behind links", approval.PatchForm{Cwd: "/w", Changes: []approval.Change{
			{Kind: "update", Path: "/home/u/.bashrc", Via: "/w/notes.txt", Added: 1},
			{Kind: "update", Path: "/w/a", MoveTo: "/w/real`/b", MoveVia: "/w/link/b"},
		}}, sentence + "\n- update `/w/notes.txt` → `/home/u/.bashrc` (outside the workspace) (+1 -0)\n" +
			"- update `/w/a` and move it to `/w/link/b` → ``'/w/real`/b'``"},
		{"many", approval.PatchForm{Changes: many}, sentence + "\n" + listed.String() + "- and 1,002 more (1,042 in all); 1,002 of them delete or replace what is there"},
		{"many, one outside", approval.PatchForm{Cwd: "/w", Changes: append(many[:40:40], approval.Change{Kind: "add", Path: "/x"})},
			sentence + "\n- add `/x` (outside the workspace)\n" + strings.TrimSuffix(listed.String(), "- delete `f39`\n") + "- and 1 more (41 in all); 1 of them delete or replace what is there"},
		{"replaced", approval.PatchForm{Cwd: "/w", Changes: []approval.Change{
			{Kind: "add", Path: "a"}, {Kind: "update", Path: "b", Replaces: true, Added: 1, Removed: 2}, {Kind: "update", Path: "c", MoveTo: "d", Replaces: true, Added: 1},
		}}, sentence + "\n- replace `b` (+1 -2)\n- update `c` and move it to `d`, which replaces what is there (+1 -0)\n- add `a`"},
		{"many, one that replaces", approval.PatchForm{Changes: append(added[:45:45], approval.Change{Kind: "update", Path: "z", Replaces: true})},
			sentence + "\n- replace `z`\n" + strings.Join(addedLines[:39], "") + "- and 6 more (46 in all)"},
	} {
		q := tt.patch.Question()
		must.Equal(t, tt.name, tt.want, q.Message)
		if q.Once != strings.HasPrefix(tt.name, "many") {
			t.Errorf("%s: once %v", tt.name, q.Once)
		}
	}
}

// visible fails if a message has a character that a human cannot see, or too many lines.
func visible(t *testing.T, message string, lines int) {
	t.Helper()
	if !utf8.ValidString(message) {
		t.Fatalf("%q is not UTF-8", message)
	}
	for _, r := range message {
		if r != '\n' && (!unicode.IsPrint(r) || unicode.Is(unicode.Variation_Selector, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)) {
			t.Fatalf("%q holds %U", message, r)
		}
	}
	if n := strings.Count(message, "\n") + 1; n > lines {
		t.Fatalf("%q has %d lines, want at most %d", message, n, lines)
	}
}

// spans returns the contents of the first two code spans of a line, read as CommonMark reads them.
func spans(line string) []string {
	var found []string
	for len(found) < 2 {
		start := strings.IndexByte(line, '`')
		if start < 0 {
			return found
		}
		rest := strings.TrimLeft(line[start:], "`")
		fence := len(line) - start - len(rest)
		end := 0
		for run := 0; ; end++ {
			if end < len(rest) && rest[end] == '`' {
				run++
				continue
			}
			if run == fence {
				break
			}
			if run = 0; end >= len(rest) {
				return found
			}
		}
		found = append(found, rest[:end-fence])
		line = rest[end:]
	}
	return found
}

// checkExec checks the properties that every message has.
func checkExec(t *testing.T, argv []string, cwd, reason string) {
	t.Helper()
	q := question(approval.Command{Command: argv, Cwd: cwd, Reason: reason})
	visible(t, q.Message, 4)
	message := q.Message
	if q.Partial {
		_, message, _ = strings.Cut(message, "\n")
	}
	sentence, _, _ := strings.Cut(message, "\n")
	parts := spans(sentence)
	if len(parts) != 2 || !strings.HasPrefix(sentence, "Allow Codex to run `") || !strings.HasSuffix(sentence, "`?") {
		t.Fatalf("%q is not the sentence; spans %q", sentence, parts)
	}
	if q.Once || len(argv) == 0 {
		return
	}
	got, err := unquote(parts[0])
	if err != nil {
		t.Fatalf("%q: %v", sentence, err)
	}
	if diff := cmp.Diff(argv, got); diff != "" {
		t.Fatalf("%q (-argv +shown):\n%s", sentence, diff)
	}
	harmless := func(s string) bool {
		return !strings.Contains(s, "`") && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
	}
	if harmless(cwd) && cwd != "" && !slices.Contains([]byte(`'" $`), cwd[0]) && !strings.HasSuffix(cwd, " ") && len(cwd) < 500 && harmless(strings.Join(argv, "")) {
		if want := "Allow Codex to run `" + shellword.Join(argv) + "` in `" + cwd + "`?"; sentence != want {
			t.Fatalf("%q, want %q", sentence, want)
		}
	}
}

func TestExecProperties(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Quotes)
	r := rand.New(rand.NewPCG(3, 4))
	for range 1500 {
		pieces := nasty
		if r.IntN(2) == 0 {
			pieces = append(slices.Clone(nasty), hiding...)
		}
		argv := make([]string, 1+r.IntN(4))
		for i := range argv {
			argv[i] = randomWord(r, pieces)
		}
		checkExec(t, argv, randomWord(r, pieces), randomWord(r, pieces))
	}
}

func FuzzMessage(f *testing.F) {
	f.Add("bash", "echo hi > made.txt", "/work", "need to write")
	f.Add("a`b", "``", "`", "`")
	for _, piece := range hiding {
		f.Add("echo", piece, "/w"+piece, piece+"reason")
	}
	f.Fuzz(func(t *testing.T, program, arg, cwd, reason string) {
		checkExec(t, []string{program, arg}, cwd, reason)
		q := (&approval.PatchForm{
			Asker: program, Reason: reason, Cwd: "/w", Notes: []string{arg},
			Changes: []approval.Change{{Kind: program, Path: arg, MoveTo: cwd, Via: cwd, MoveVia: arg, Diff: strings.Repeat(reason+"\n", 3)}},
		}).Question()
		// The change ends before the lines after it, however it is written.
		var own []string
		for line := range strings.SplitSeq(q.Message, "\n") {
			if !strings.HasPrefix(line, approval.DiffIndent) {
				own = append(own, line)
			}
		}
		visible(t, strings.Join(own, "\n"), 5)
		visible(t, strings.ReplaceAll(q.Message, "\t", ""), 5+20+3)
	})
}

// TestNothingHides has the texts at the edges of what is escaped, cut and marked.
func TestNothingHides(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Quotes)
	for text, want := range map[string]string{
		"\u0080": `\u{80}`, "\u0301\u0302": `\u{301}\u{302}`, "a\tb\nc\t": "a\tb\nc\t", "\x1b\u0301\u0302x": `\x1b\u{301}\u{302}x`,
	} {
		if got := elicit.ShowText(text); got != want {
			t.Errorf("%+q: %q, want %q", text, got, want)
		}
	}
	must.Equal(t, "one line", "a bc d", plain.OneLine("a\nbc\td", 0))
	const hidden = "\n(contains hidden characters)"
	exact, over := strings.Repeat("x", 1800), strings.Repeat("x", 1801)
	for _, tt := range []struct {
		exec approval.Command
		want string
		once bool
	}{
		{approval.Command{Command: []string{"a\u200b", "b"}, Cwd: "/w"}, "Allow Codex to run `$'a\\u{200b}' b` in `/w`?" + hidden, false},
		{approval.Command{Command: []string{"ls"}, Cwd: "'w"}, "Allow Codex to run `ls` in `\"'w\"`?", false},
		{approval.Command{Command: []string{"ls"}, Cwd: `"w`}, "Allow Codex to run `ls` in `'\"w'`?", false},
		{approval.Command{Command: []string{"ls"}, Cwd: " w"}, "Allow Codex to run `ls` in `' w'`?", false},
		{approval.Command{Command: []string{"ls"}, Cwd: "w "}, "Allow Codex to run `ls` in `'w '`?", false},
		{approval.Command{Command: []string{"ls"}, Cwd: "/w", Reason: "see https://x.test"},
			"Allow Codex to run `ls` in `/w`?\nReason given by the model: `\"see https://x.test\"`", false},
		{approval.Command{Command: []string{"ls"}, Cwd: "/w", Reason: "see www.x.test"},
			"Allow Codex to run `ls` in `/w`?\nReason given by the model: `\"see www.x.test\"`", false},
		{approval.Command{Command: []string{exact}, Cwd: "/w"}, "Allow Codex to run `" + exact + "` in `/w`?", false},
		{approval.Command{Command: []string{over}, Cwd: "/w"}, "The command is not shown whole: it has 1,801 characters in 1 line.\nAllow Codex to run `" + over[:1500] + "… (1 characters hidden) …" + over[:300] + "` in `/w`?", true},
		{approval.Command{Command: []string{strings.Repeat("x", 1_001_800)}, Cwd: "/w"}, "The command is not shown whole: it has 1,001,800 characters in 1 line.\nAllow Codex to run `" + over[:1500] + "… (1,000,000 characters hidden) …" + over[:300] + "` in `/w`?", true},
		{approval.Command{Command: []string{strings.Repeat("x", 1900)}, Cwd: "/w"}, "The command is not shown whole: it has 1,900 characters in 1 line.\nAllow Codex to run `" + over[:1500] + "… (100 characters hidden) …" + over[:300] + "` in `/w`?", true},
	} {
		if q := question(tt.exec); q.Message != tt.want || q.Once != tt.once {
			t.Errorf("%.120q, once %v, want %.120q, once %v", q.Message, q.Once, tt.want, tt.once)
		}
	}
	for text, want := range map[string]string{
		"`a": "`` `a ``", "a`": "`` a` ``", " ": "`   `", "a`b": "``a`b``", "a": "`a`", "\u200b": "`\\u{200b}` (contains hidden characters)",
	} {
		if span, whole := elicit.ShowCode(text); span != want || !whole {
			t.Errorf("%q: %q, whole %v, want %q", text, span, whole, want)
		}
	}
	if span, whole := elicit.ShowCode(over); whole || len(span) > 1850 {
		t.Errorf("%d bytes shown, whole %v", len(span), whole)
	}
}

// TestChangesAtTheEdge checks what a question about many changes lists: all of forty, and those
// that leave the workspace or go through links first.
func TestChangesAtTheEdge(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Paths)
	plain := make([]approval.Change, 45)
	for i := range plain {
		plain[i] = approval.Change{Kind: "add", Path: fmt.Sprint("f", i)}
	}
	q := (&approval.PatchForm{Cwd: "/w", Changes: plain[:40]}).Question()
	if strings.Contains(q.Message, "more") || !strings.Contains(q.Message, "`f39`") || q.Once {
		t.Errorf("forty: once %v, %s", q.Once, q.Message)
	}
	for name, c := range map[string]approval.Change{
		"link":          {Kind: "add", Path: "zz", Via: "other"},
		"link to move":  {Kind: "update", Path: "zz", MoveTo: "yy", MoveVia: "other"},
		"outside":       {Kind: "add", Path: "../zz"},
		"moves outside": {Kind: "update", Path: "zz", MoveTo: "../yy"},
	} {
		q := (&approval.PatchForm{Cwd: "/w", Changes: append(plain[:45:45], c)}).Question()
		if !strings.Contains(strings.Split(q.Message, "\n")[1], "zz`") || strings.Contains(q.Message, "too") {
			t.Errorf("%s: %s", name, q.Message)
		}
	}
	all := make([]approval.Change, 41)
	for i := range all {
		all[i] = approval.Change{Kind: "delete", Path: fmt.Sprint("../f", i), Removed: 2}
	}
	q = (&approval.PatchForm{Cwd: "/w", Changes: all}).Question()
	if !strings.Contains(q.Message, "- and 1 more (41 in all), which may be outside the workspace too; 1 of them delete or replace what is there") || !strings.Contains(q.Message, "- delete `../f0` (outside the workspace) (+0 -2)") {
		t.Error(q.Message)
	}
	q = (&approval.PatchForm{Changes: []approval.Change{{Kind: "add", Path: "../x"}}}).Question()
	if strings.Contains(q.Message, "outside") {
		t.Errorf("without a workspace: %s", q.Message)
	}
}

// TestStackedMarks checks that no text of another party covers the lines around.
func TestStackedMarks(t *testing.T) {
	shout := "e" + strings.Repeat("\u0301", 300)
	for name, q := range map[string]*elicit.Question{
		"command": question(approval.Command{Command: []string{"echo", shout}, Cwd: "/w"}),
		"folder":  question(approval.Command{Command: []string{"true"}, Cwd: "/w/" + shout}),
		"reason":  question(approval.Command{Command: []string{"true"}, Cwd: "/w", Reason: shout}),
		"note":    question(approval.Command{Command: []string{"true"}, Cwd: "/w", Notes: []string{shout}}),
		"subject": question(approval.Command{Asker: shout, Command: []string{"true"}, Cwd: "/w"}),
		"path":    (&approval.PatchForm{Changes: []approval.Change{{Kind: "add", Path: shout}}}).Question(),
	} {
		if strings.Contains(q.Message, strings.Repeat("\u0301", 9)) || !strings.Contains(q.Message, "(contains hidden characters)") {
			t.Errorf("%s: %q", name, q.Message)
		}
	}
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	must.OK(t, err)
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// nasty are pieces that quoting must handle.
var nasty = []string{"'", `"`, `\`, "$", "`", "!", "^", " ", "a", "B", "0", "/", "=", ",", "é", "漢", "*", "~", "#", "(", "&&", "{", "]", "%", ";", "|", "<", "-", "é"}

// hiding are pieces that a human would not see, or would see in the wrong place.
var hiding = []string{"\n", "\r", "\t", "\x00", "\x1b[2K", "\x7f", "\u0085", "\u009b", "\u00a0", "\u00ad", "\u061c", "\u200b", "\u200d", "\u200e", "\u200f",
	"\u2028", "\u2029", "\u202a", "\u202e", "\u2060", "\u2066", "\u2069", "\u2800", "\u3000", "\u3164", "\ufe0f", "\ufeff", "\U000e0041", "\U000e0100", "\u0301", "\xff", "\xc3", "\xed\xa0\x80"}

func randomWord(r *rand.Rand, pieces []string) string {
	var b strings.Builder
	for range r.IntN(7) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// unquote reads a shown command back into argv. It is a reference written without the code that quotes: bare characters,
// single quotes, double quotes, and $'…' with the escapes that package doc promises.
func unquote(shown string) ([]string, error) {
	var argv []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(shown); {
		switch {
		case shown[i] == ' ':
			if !inWord {
				return nil, errors.New("two blanks")
			}
			argv, inWord = append(argv, word.String()), false
			word.Reset()
			i++
			continue
		case strings.HasPrefix(shown[i:], "$'"):
			n, err := ansi(shown[i+2:], &word)
			if err != nil {
				return nil, err
			}
			i += 2 + n
		case shown[i] == '\'':
			n := strings.IndexByte(shown[i+1:], '\'')
			if n < 0 {
				return nil, errors.New("open single quote")
			}
			word.WriteString(shown[i+1 : i+1+n])
			i += n + 2
		case shown[i] == '"':
			i++
			for ; i < len(shown) && shown[i] != '"'; i++ {
				if strings.IndexByte("$`!", shown[i]) >= 0 {
					return nil, errors.New("special character in double quotes")
				}
				if shown[i] == '\\' {
					i++
				}
				if i < len(shown) {
					word.WriteByte(shown[i])
				}
			}
			if i >= len(shown) {
				return nil, errors.New("open double quote")
			}
			i++
		default:
			if c := shown[i]; !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("+-./:@]_", c) >= 0) {
				return nil, errors.New("bare " + strconv.Quote(string(c)))
			}
			word.WriteByte(shown[i])
			i++
		}
		inWord = true
	}
	if !inWord {
		return nil, errors.New("no last word")
	}
	return append(argv, word.String()), nil
}

// ansi reads what follows $' up to and with the closing quote.
func ansi(s string, word *strings.Builder) (int, error) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\'':
			return i + 1, nil
		case '\\':
			i++
			if i == len(s) {
				return 0, errors.New("open escape")
			}
			switch s[i] {
			case 'n', 'r', 't':
				word.WriteByte(map[byte]byte{'n': '\n', 'r': '\r', 't': '\t'}[s[i]])
			case '\\', '\'':
				word.WriteByte(s[i])
			case 'x':
				b, err := hex.DecodeString(s[i+1 : i+3])
				if err != nil {
					return 0, err
				}
				word.Write(b)
				i += 2
			case 'u':
				digits, _, ok := strings.Cut(s[i+1:], "}")
				r, err := strconv.ParseUint(strings.TrimPrefix(digits, "{"), 16, 32)
				if !ok || err != nil || !utf8.ValidRune(rune(r)) {
					return 0, errors.New(`bad \u`)
				}
				word.WriteRune(rune(r))
				i += len(digits) + 1
			default:
				return 0, errors.New("unknown escape " + s[i:i+1])
			}
		default:
			word.WriteByte(s[i])
		}
	}
	return 0, errors.New("open $'")
}
