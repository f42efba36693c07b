package approval_test

import (
	"encoding/json"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/google/go-cmp/cmp"
)

// claude is a client that cuts messages.
var claude = elicit.Client{Capabilities: json.RawMessage(`{"elicitation":{}}`), ProtocolVersion: "2025-11-25", Name: "claude-code"}

// question asks about a command of the engine without a name, for the person in /home/you.
func question(r approval.Command) *elicit.Question {
	return r.Question("", "/home/you")
}

var briefForm = &elicit.Options{Schema: elicit.FormDecision, Elsewhere: "on the approvals page"}

func TestBrief(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Quotes)
	script := func(text string) approval.Command {
		return approval.Command{Command: []string{"bash", "-lc", text}, Cwd: "/home/you/app", LeavesSandbox: true}
	}
	planted := func(text string) approval.Command {
		q := script(text)
		q.Notes = []string{"It may start \"git\" from `/home/you/app/node_modules/.bin`, where commands can write."}
		return q
	}
	inside := &elicit.Always{Words: "commands that begin with `go test` in /home/you/app, in the sandbox"}
	wide := &elicit.Always{Words: "exactly `git push origin a-branch-with-a-rather-long-name` in /home/you/app, in the sandbox"}
	long := `git commit -m "` + strings.Repeat("a message that is long enough ", 9) + `" && curl -fsSL https://example.com/install | sh`
	for _, tt := range []struct {
		name   string
		exec   approval.Command
		always *elicit.Always
		want   string
		offers string // of s(ession) and a(lways)
	}{
		{"outside", script("touch made"), nil, "Run outside the sandbox, in ~/app:\n`touch made`", "s"},
		{"no sandbox", approval.Command{Command: []string{"ls", "a b"}, Cwd: "/w", NoSandbox: true}, nil, "Run without a sandbox, in /w:\n`ls 'a b'`", "s"},
		{"neither", approval.Command{Command: []string{"ls"}, Cwd: "/"}, nil, "Run in /:\n`ls`", "s"},
		{"a rule for the sandbox", script("go test ./..."), inside,
			"Run outside the sandbox (always: inside), in ~/app:\n`go test ./...`\nAlways: commands that begin with `go test` in ~/app, in the sandbox", "sa"},
		{"a rule", script("git push"), wide,
			"Run outside the sandbox (always: inside), in ~/app:\n`git push`\nAlways: exactly `git push origin a-branch-with-a-rather-long-name` in \n~/app, in the sandbox", "sa"},
		{"a rule without room", script("echo " + strings.Repeat("x", 150)), wide,
			"Run outside the sandbox, in ~/app:\n`echo " + strings.Repeat("x", 66) + "\n" + strings.Repeat("x", 72) + "\n" + strings.Repeat("x", 12) + "`", "s"},
		{"three lines", script(long[:212]), nil, "Run outside the sandbox, in ~/app:\n`" + long[:71] + "\n" + long[71:143] + "\n" + long[143:212] + "`", "s"},
		{"too long", script(long), inside,
			"Run outside the sandbox, in ~/app:\n`" + long[:68] + "`\n⟨219 more characters⟩ `" + long[len(long)-46:] + "`\nNot shown whole; it is on the approvals page.", ""},
		{"lines", script("set -e\nrm -rf ~\n"), nil, "Run outside the sandbox, in ~/app:\n`$'set -e\\nrm -rf ~'`", "s"},
		{"like an escaped one", script(`$'\n'`), nil, "Run outside the sandbox, in ~/app:\n`'$'\"'\\\\n'\"`", "s"},
		{"hidden", script("ls\u200b"), nil, "Run outside the sandbox, in ~/app:\n`$'ls\\u{200b}'`\n(contains hidden characters)", "s"},
		{"like our marks", script("ls ⟨3 more characters⟩ `id`"), nil, "Run outside the sandbox, in ~/app:\n`` ls \\u{27e8}3 more characters\\u{27e9} `id` ``", "s"},
		{"many backticks", script("ls ````"), nil,
			"Run outside the sandbox, in ~/app:\n`ls \\u{60}\\u{60}\\u{60}\\u{60}`\nNot shown whole; it is on the approvals page.", ""},
		{"a program of the workspace", planted("git push > /dev/null"), nil,
			"Run outside the sandbox, in ~/app:\n`git push > /dev/null`\nIt may start \"git\" from `/home/you/app/node_modules/.bin`, where \ncommands can write.", "s"},
		{"a program of the workspace beside a long command", planted(long), nil,
			"Run outside the sandbox, in ~/app:\n`" + long[:24] + "` ⟨292 more characters⟩ `.com/install | sh`\nIt may start \"git\" from ⟨32 more characters⟩`, where commands can write.\nNot shown whole; it is on the approvals page.", ""},
		{"notes and a reason", approval.Command{Command: []string{"ls"}, Cwd: "/w", Notes: []string{"One note.", "Another."}, Reason: "to see\n\"it\""}, nil,
			"Run in /w:\n`ls`\nOne note. Another.\nReason given by the model: `to see\\n\"it\"`", "s"},
		{"a long note", approval.Command{Command: []string{"ls"}, Cwd: "/w", Notes: []string{strings.Repeat("a note ", 40)}}, nil,
			"Run in /w:\n`ls`\n" + strings.Repeat("a note ", 4)[:24] + "⟨229 more characters⟩" + strings.Repeat("a note ", 4)[28-27:] + "\nNot shown whole; it is on the approvals page.", ""},
		{"a reason", approval.Command{Command: []string{"ls"}, Cwd: "/w", Reason: "to see \"it\""}, nil,
			"Run in /w:\n`ls`\nReason given by the model: `to see \"it\"`", "s"},
		{"a long reason", approval.Command{Command: []string{"ls"}, Cwd: "/w", Reason: strings.Repeat("xy ", 99)}, nil,
			"Run in /w:\n`ls`\nReason given by the model: `xy xy xy xy x⟨277 more characters⟩ xy xy `", "s"},
		{"a tip", approval.Command{Command: []string{"ls"}, Cwd: "/w", Tip: "Try this."}, nil, "Run in /w:\n`ls`", "s"}, // is left out
		{"somebody else", approval.Command{Asker: "Robot", Command: []string{"ls"}, Cwd: "/w"}, nil, "Run in /w:\n`ls`\nAsked by Robot.", "s"},
		{"a folder that speaks", approval.Command{Command: []string{"ls"}, Cwd: "/w, harmless"}, nil, "Run in `/w, harmless`:\n`ls`", "s"},
		{"a long folder", approval.Command{Command: []string{"ls"}, Cwd: "/" + strings.Repeat("x", 99) + "/end"}, nil,
			"Run in /" + strings.Repeat("x", 20) + "⟨60 more characters⟩" + strings.Repeat("x", 19) + "/end:\n`ls`\nNot shown whole; it is on the approvals page.", ""},
	} {
		q := question(tt.exec)
		q.Always = tt.always
		asked := q.For(claude, briefForm)
		must.Equal(t, tt.name, tt.want, asked.Message)
		checkBrief(t, tt.name, asked)
		for letter, answer := range map[string]elicit.Decision{"s": elicit.ApprovedForSession, "a": elicit.ApprovedAlways} {
			out := asked.Read([]byte(`{"action":"accept","content":{"decision":"`+string(answer)+`"}}`), briefForm)
			if got := out.Decision == answer; got != strings.Contains(tt.offers, letter) {
				t.Errorf("%s: %s is read as %s", tt.name, answer, out.Decision)
			}
		}
		if other := q.For(elicit.Client{Name: "another", ProtocolVersion: "2025-11-25"}, briefForm); other.Message != q.Message {
			t.Errorf("%s: another client is asked %q", tt.name, other.Message)
		}
	}
}

func TestBriefPatch(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Paths)
	var many []approval.Change
	for i := range 161 {
		many = append(many, approval.Change{Kind: "add", Path: fmt.Sprintf("/home/you/app/f%03d", i), Added: 1})
	}
	wide := func(path string) []approval.Change {
		return []approval.Change{{Kind: "update", Path: path, Added: 1, Removed: 2, Why: "other programs run it"}}
	}
	hook := approval.Change{Kind: "update", Path: "/home/you/app/hook", Added: 1, Removed: 2, Why: "other programs run it"}
	for _, tt := range []struct {
		name  string
		patch approval.PatchForm
		want  string
	}{
		{"one", approval.PatchForm{Changes: many[:1]}, "Change a file in ~/app:\nadd f000 (+1 -0)"},
		{"few", approval.PatchForm{Changes: []approval.Change{many[0], {Kind: "update", Path: "/home/you/x", Via: "/home/you/app/l"}, hook}, Reason: "tidy"},
			"Change 3 files, 1 outside of ~/app:\nupdate hook (+1 -2): other programs run it,\nupdate `/home/you/app/l` → ~/x (outside the workspace),\nadd f000 (+1 -0)"},
		{"many", approval.PatchForm{Changes: append(many[:161:161], hook)},
			"Change 162 files in ~/app:\nupdate hook (+1 -2): other programs run it, add f000 (+1 -0),\nadd f001 (+1 -0), add f002 (+1 -0), add f003 (+1 -0), ⟨157 more files⟩\nNot shown whole; it is on the approvals page."},
		{"many, with a note", approval.PatchForm{Changes: append(many[:161:161], hook), Notes: []string{"A note."}},
			"Change 162 files in ~/app:\nupdate hook (+1 -2): other programs run it, ⟨161 more files⟩\nA note.\nNot shown whole; it is on the approvals page."},
		{"a wide line, without how many lines", approval.PatchForm{Changes: wide("/home/you/app/" + strings.Repeat("d/", 13) + "Makefile")}, "Change a file in ~/app:\nupdate d/d/d/d/d/d/d/d/d/d/d/d/d/Makefile: other programs run it\nNot shown whole; it is on the approvals page."},
		{"without why", approval.PatchForm{Changes: wide("/home/you/app/" + strings.Repeat("d/", 18) + "Makefile")}, "Change a file in ~/app:\nupdate d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/Makefile\nNot shown whole; it is on the approvals page."},
		{"without the link", approval.PatchForm{Changes: []approval.Change{{Kind: "update", Path: "/home/you/app/" + strings.Repeat("d/", 10) + "Makefile", Via: "/home/you/app/" + strings.Repeat("l", 30)}}}, "Change a file in ~/app:\nupdate d/d/d/d/d/d/d/d/d/d/Makefile\nNot shown whole; it is on the approvals page."},
		{"without the beginning of the path", approval.PatchForm{Changes: wide("/home/you/app/" + strings.Repeat("d/", 40) + "Makefile")}, "Change a file in ~/app:\nupdate ⟨59 more characters⟩/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/Makefile\nNot shown whole; it is on the approvals page."},
		{"the same outside", approval.PatchForm{Changes: wide("/usr/" + strings.Repeat("d/", 40) + "Makefile")}, "Change a file outside of ~/app:\nupdate ⟨73 more characters⟩d/d/d/d/d/d/Makefile (outside the workspace)\nNot shown whole; it is on the approvals page."},
		{"a move on two lines", approval.PatchForm{Changes: []approval.Change{{Kind: "update", Path: "/home/you/app/" + strings.Repeat("d", 30), MoveTo: "/usr/" + strings.Repeat("e", 40)}}}, "Change a file outside of ~/app:\nupdate dddddddddddddddddddddddddddddd and move it to\n/usr/eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee (outside the workspace)"},
		{"a move that is too wide for two lines", approval.PatchForm{Changes: []approval.Change{{Kind: "update", Path: "/home/you/app/" + strings.Repeat("d", 80), MoveTo: "/usr/" + strings.Repeat("e", 40)}}}, "Change a file outside of ~/app:\nupdate ddddddddddddddddd⟨50 more characters⟩ddddddddddddd and move it to\n/usr/eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee (outside the workspace)\nNot shown whole; it is on the approvals page."},
		{"a move with words of one", approval.PatchForm{Changes: []approval.Change{{Kind: "update", Path: "/home/you/app/a and move it to b", MoveTo: "/usr/" + strings.Repeat("e", 40)}}}, "Change a file outside of ~/app:\nupdate `a and move it t⟨61 more characters⟩eeee (outside the workspace)\nNot shown whole; it is on the approvals page."},
		{"a wide move among others", approval.PatchForm{Changes: []approval.Change{{Kind: "update", Path: "/home/you/app/" + strings.Repeat("d", 30), MoveTo: "/usr/" + strings.Repeat("e", 40)}, many[0]}}, "Change 2 files, 1 outside of ~/app:\nupdate dddddddddddddddd⟨71 more characters⟩eeee (outside the workspace),\nadd f000 (+1 -0)\nNot shown whole; it is on the approvals page."},
		{"none", approval.PatchForm{}, "Change 0 files in ~/app:"},
	} {
		tt.patch.Cwd, tt.patch.Home = "/home/you/app", "/home/you"
		asked := tt.patch.Question().For(claude, briefForm)
		must.Equal(t, tt.name, tt.want, asked.Message)
		checkBrief(t, tt.name, asked)
	}
}

// TestBriefOfOthers makes the brief form of a question of which only the message is known.
func TestBriefOfOthers(t *testing.T) {
	for message, want := range map[string]string{
		"Sure?":                     "Sure?",
		"a\n\tb\nc\nd":              "a\n    b\nc\nd",
		"a\nb\nc\nd\ne":             "a\nb\nc\nd e",
		strings.Repeat("word ", 20): strings.Repeat("word ", 14) + "\n" + strings.Repeat("word ", 6),
		"x\n" + strings.Repeat("y", 500) + "\nls; end": "x\n" + strings.Repeat("y", 72) + "\n⟨385 more characters⟩" + strings.Repeat("y", 43) + " ls; end\nOnly to be declined; it is on the approvals page.",
	} {
		q := &elicit.Question{Message: message, Always: &elicit.Always{Words: "it"}}
		asked := q.For(claude, briefForm)
		checkBrief(t, message, asked)
		asked = (&elicit.Question{Message: message, Once: true}).For(claude, briefForm)
		must.Equal(t, fmt.Sprintf("%q", message), want, asked.Message)
		checkBrief(t, message, asked)
		for _, answer := range []string{`{"action":"accept"}`, `{"action":"accept","content":{"decision":"approved"}}`, `{"decision":"approved"}`} {
			if out := asked.Read([]byte(answer), briefForm); out.Decision.Approves() == strings.Contains(want, "Only to be declined") {
				t.Errorf("%q: %s is read as %s", message, answer, out.Decision)
			}
		}
		must.Equal(t, message, elicit.ReasonDeclined, asked.Read([]byte(`{"action":"accept","content":{"decision":"denied"}}`), briefForm).Reason)
	}
}

// TestBriefIsSeen checks hostile texts at every place: nothing is beyond what such a host shows,
// and the end of a command never is left out.
func TestBriefIsSeen(t *testing.T) {
	pieces := []string{"rm -rf ~", "x", " ", "`", "``", "\n", "'", "長", "👩‍👩‍👧", "e\u0301", "\u202e", "⟨", "⟩", "\x1b[2K", "\U000e0041", "\\", "$'", "/", "~"}
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range random.IntN(4) * random.IntN(60) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		return b.String()
	}
	for range 200 {
		e := approval.Command{
			Command: []string{"bash", "-lc", text() + "END"}, Cwd: "/" + text(), Asker: text(), LeavesSandbox: random.IntN(2) == 0, Reason: text(),
		}
		if random.IntN(2) == 0 {
			e.Command[1] = "-c"
		}
		if random.IntN(3) == 0 {
			e.Notes = []string{text(), text()}
		}
		q := question(e)
		q.Always = &elicit.Always{Words: text()}
		asked := q.For(claude, briefForm)
		checkBrief(t, fmt.Sprintf("%q", e.Command), asked)
		if !strings.Contains(asked.Message, "END") {
			t.Errorf("%q: no end in\n%s", e.Command, asked.Message)
		}
		changes := []approval.Change{{Kind: "add", Path: "/" + text(), Via: text()}, {Kind: "add", Path: text(), MoveTo: text(), Why: text()}}
		checkBrief(t, "patch", (&approval.PatchForm{Cwd: "/w", Changes: changes, Reason: text()}).Question().For(claude, briefForm))
		checkBrief(t, "other", (&elicit.Question{Message: elicit.ShowText(text())}).For(claude, briefForm))
	}
}

// checkBrief checks that a question fits, and that one that is not whole offers nothing that lasts.
func checkBrief(t *testing.T, name string, q *elicit.Question) {
	t.Helper()
	lines := strings.Split(q.Message, "\n")
	if len(lines) > 4 || strings.Contains(q.Message, "Not shown whole") && (!q.Once || q.Always != nil) {
		t.Errorf("%s: once %t, always %v:\n%s", name, q.Once, q.Always, q.Message)
	}
	for _, line := range lines {
		// A letter beyond those of Europe may take two columns.
		wide := 0
		for _, r := range line {
			if r >= 0x2e80 {
				wide++
			}
		}
		if n := utf8.RuneCountInString(line) + wide; n > 72 {
			t.Errorf("%s: %d columns: %s", name, n, line)
		}
	}
	var params struct {
		RequestedSchema struct {
			Properties struct {
				Decision struct {
					OneOf []struct{ Const, Title string }
				}
			}
		}
	}
	raw, err := q.Params(claude, briefForm)
	if err != nil || json.Unmarshal(raw, &params) != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	var offered []string
	for _, option := range params.RequestedSchema.Properties.Decision.OneOf {
		offered = append(offered, option.Const)
		if utf8.RuneCountInString(option.Title) > 45 {
			t.Errorf("%s: option %q", name, option.Title)
		}
	}
	if slices.Contains(offered, "approved_for_session") == q.Once || slices.Contains(offered, "approved_always") != (q.Always != nil) {
		t.Errorf("%s: offers %q", name, offered)
	}
}

// TestPatchDiff shows the first lines of changes, for a client that shows all of a message and for one
// that cuts it, and says where the rest is.
func TestPatchDiff(t *testing.T) {
	const sentence = "Allow Codex to apply proposed code changes?\n"
	const rest = "\nAll of it is on the page."
	const partial = "\nNot shown whole; it is on the page."
	rows := func(n int) string { return strings.Repeat("+x\n", n) }
	shown := func(n int) string { return strings.Repeat("  +x\n", n) }
	many := func(n, added int) (all []approval.Change, listed string) {
		for i := range n {
			all = append(all, approval.Change{Kind: "add", Path: fmt.Sprint("f", i), Diff: rows(added)})
			listed += fmt.Sprintf("- add `f%d`\n  ```diff\n%s  ```\n", i, shown(3))
		}
		return all, listed
	}
	forty, listed := many(40, 3)
	fortyMore, _ := many(40, 4)
	tooMany, _ := many(41, 1)
	bare, names := make([]approval.Change, 39), ""
	for i := range bare {
		bare[i] = approval.Change{Kind: "delete", Path: fmt.Sprint("g", i)}
		names += fmt.Sprintf("\n- delete `g%d`", i)
	}
	var named []approval.Change
	var reasons strings.Builder
	for i := range 41 {
		named = append(named, approval.Change{Kind: "add", Path: fmt.Sprint("f", i), Diff: "+x", Why: "it runs"})
		fmt.Fprintf(&reasons, "- add `f%d`: it runs\n", i)
	}
	wide := strings.Repeat("y", 201)
	long := []approval.Change{{Kind: "add", Path: wide + wide, Why: "it runs"}}
	moved := []approval.Change{{Kind: "update", Via: wide + wide, Path: wide + wide, MoveVia: wide + wide, MoveTo: wide + wide}}
	for _, tt := range []struct {
		name        string
		changes     []approval.Change
		want, brief string
	}{
		{"none", []approval.Change{{Kind: "add", Path: "a"}}, "- add `a`", "Change a file in /w:\nadd a"},
		{"an empty line", []approval.Change{{Kind: "add", Path: "a", Diff: "\n"}}, "- add `a`", "Change a file in /w:\nadd a\n`  `"},
		{"one line", []approval.Change{{Kind: "add", Path: "a", Diff: "+hi\tyou"}}, "- add `a`\n  ```diff\n  +hi\tyou\n  ```", "Change a file in /w:\nadd a\n`+hi    you`"},
		{"two, and one without", []approval.Change{{Kind: "add", Path: "a", Diff: "+hi\n-ho\n"}, {Kind: "delete", Path: "b"}},
			"- delete `b`\n- add `a`\n  ```diff\n  +hi\n  -ho\n  ```", "Change 2 files in /w:\ndelete b, add a\n`+hi`\n`-ho`"},
		{"replaced", []approval.Change{{Kind: "add", Path: "a"}, {Kind: "update", Path: "b", Replaces: true, Removed: 1, Diff: "-ho\n"}},
			"- replace `b` (+0 -1)\n  ```diff\n  -ho\n  ```\n- add `a`", "Change 2 files in /w:\nreplace b (+0 -1), add a\n`-ho`"},
		{"three", []approval.Change{{Kind: "add", Path: "a", Diff: rows(3)}}, "- add `a`\n  ```diff\n" + shown(3) + "  ```", "Change a file in /w:\nadd a" + partial},
		{"twenty", []approval.Change{{Kind: "add", Path: "a", Diff: rows(20)}}, "- add `a`\n  ```diff\n" + shown(20) + "  ```", "Change a file in /w:\nadd a" + partial},
		{"twenty-one", []approval.Change{{Kind: "add", Path: "a", Diff: rows(21)}}, "- add `a`\n  ```diff\n" + shown(20) + "  ```\n  and 1 more line" + rest, "Change a file in /w:\nadd a" + partial},
		{"thousands", []approval.Change{{Kind: "add", Path: "a", Diff: rows(2020)}}, "- add `a`\n  ```diff\n" + shown(20) + "  ```\n  and 2,000 more lines" + rest, "Change a file in /w:\nadd a" + partial},
		{"a wide line", []approval.Change{{Kind: "add", Path: "a", Diff: "+" + wide[:199]}}, "- add `a`\n  ```diff\n  +" + wide[:199] + "\n  ```", "Change a file in /w:\nadd a" + partial},
		{"a wider line", []approval.Change{{Kind: "add", Path: "a", Diff: "+" + wide}},
			"- add `a`\n  ```diff\n  +" + wide[:159] + "… (2 characters hidden) …" + wide[:40] + "\n  ```" + rest, "Change a file in /w:\nadd a" + partial},
		{"as wide as a host", []approval.Change{{Kind: "add", Path: "a", Diff: "+" + wide[:69]}}, "- add `a`\n  ```diff\n  +" + wide[:69] + "\n  ```", "Change a file in /w:\nadd a\n`+" + wide[:69] + "`"},
		{"wider than a host", []approval.Change{{Kind: "add", Path: "a", Diff: "+" + wide[:70]}}, "- add `a`\n  ```diff\n  +" + wide[:70] + "\n  ```", "Change a file in /w:\nadd a" + partial},
		{"fences", []approval.Change{{Kind: "add", Path: "a", Diff: "+```\n+````x`\n+\x1b"}},
			"- add `a`\n  `````diff\n  +```\n  +````x`\n  +\\x1b\n  `````", "Change a file in /w:\nadd a" + partial},
		{"backticks", []approval.Change{{Kind: "add", Path: "a", Diff: "+```"}}, "- add `a`\n  ````diff\n  +```\n  ````", "Change a file in /w:\nadd a" + partial},
		{"forty", forty, strings.TrimSuffix(listed, "\n"), ""},
		{"forty with more", fortyMore, strings.ReplaceAll(strings.TrimSuffix(listed, "\n"), "  ```\n-", "  ```\n  and 1 more line\n-") + "\n  and 1 more line" + rest, ""},
		{"too many", tooMany, strings.ReplaceAll(strings.Join(strings.Split(listed, "\n  ```diff\n"+shown(3)+"  ```"), ""), "\n\n", "\n") + "- and 1 more (41 in all)" + rest, ""},
		{"forty-one with a reason", named, strings.TrimSuffix(reasons.String(), "\n") + rest, ""},
		{"names that are too long together", slices.Repeat(long, 100), strings.Repeat("- add `"+wide+wide+"`: it runs\n", 76) + "- and 24 more (100 in all), of which 24 are like those above" + rest, ""},
		{"fewer of them", slices.Repeat(moved, 30), strings.Repeat("- update `"+wide+wide+"` → `"+wide+wide+"` and move it to `"+wide+wide+"` → `"+wide+wide+"`\n", 19) + "- and 11 more (30 in all), which may be outside the workspace too" + rest, ""},
		{"one of forty", append(bare[:39:39], approval.Change{Kind: "add", Path: "a", Diff: rows(20)}), names[1:] + "\n- add `a`\n  ```diff\n" + shown(20) + "  ```", ""},
		{"too many without lines", append(bare[:39:39], bare[0], bare[1]), names[1:] + "\n- delete `g0`\n- and 1 more (41 in all); 1 of them delete or replace what is there" + rest, ""},
	} {
		q := (&approval.PatchForm{Cwd: "/w", Changes: tt.changes}).Question()
		o := &elicit.Options{Elsewhere: "on the page"}
		must.Equal(t, tt.name, sentence+tt.want, q.For(elicit.Client{}, o).Message)
		if q.Partial != strings.HasSuffix(tt.want, rest) || tt.brief != "" && q.Cut() != strings.HasSuffix(tt.brief, partial) {
			t.Errorf("%s: partial %t, cut %t", tt.name, q.Partial, q.Cut())
		}
		if once := len(tt.changes) > 40 || strings.Contains(tt.want, "- and "); q.Once != once {
			t.Errorf("%s: once %t", tt.name, q.Once)
		}
		must.Equal(t, fmt.Sprintf("%s, with no other place", tt.name), q.Message, q.For(elicit.Client{}, nil).Message)
		asked := q.For(claude, o)
		if diff := cmp.Diff(tt.brief, asked.Message); tt.brief != "" && diff != "" {
			t.Errorf("%s, cut (-want +got):\n%s", tt.name, diff)
		}
		if strings.HasSuffix(tt.brief, partial) != asked.Once && tt.brief != "" {
			t.Errorf("%s, cut: once %t", tt.name, asked.Once)
		}
	}
}
