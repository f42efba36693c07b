package approval_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

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
			"- add `a`\n  ```diff\n  +hi\n  -ho\n  ```\n- delete `b`", "Change 2 files in /w:\nadd a, delete b\n`+hi`\n`-ho`"},
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
		{"too many without lines", append(bare[:39:39], bare[0], bare[1]), names[1:] + "\n- delete `g0`\n- and 1 more (41 in all)" + rest, ""},
	} {
		q := (&approval.Patch{Cwd: "/w", Changes: tt.changes}).Question()
		o := &elicit.Options{Elsewhere: "on the page"}
		if diff := cmp.Diff(sentence+tt.want, q.For(elicit.Client{}, o).Message); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if q.Partial != strings.HasSuffix(tt.want, rest) || tt.brief != "" && q.Cut() != strings.HasSuffix(tt.brief, partial) {
			t.Errorf("%s: partial %t, cut %t", tt.name, q.Partial, q.Cut())
		}
		if once := len(tt.changes) > 40 || strings.Contains(tt.want, "- and "); q.Once != once {
			t.Errorf("%s: once %t", tt.name, q.Once)
		}
		if got := q.For(elicit.Client{}, nil).Message; got != q.Message {
			t.Errorf("%s, with no other place: %s", tt.name, got)
		}
		asked := q.For(claude, o)
		if diff := cmp.Diff(tt.brief, asked.Message); tt.brief != "" && diff != "" {
			t.Errorf("%s, cut (-want +got):\n%s", tt.name, diff)
		}
		if strings.HasSuffix(tt.brief, partial) != asked.Once && tt.brief != "" {
			t.Errorf("%s, cut: once %t", tt.name, asked.Once)
		}
	}
}
