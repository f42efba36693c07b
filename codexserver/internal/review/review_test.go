package review_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/internal/review"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const sample = `diff --git a/a b.go b/a b.go
index 1..2 100644
--- a/a b.go` + "\t" + `
+++ b/a b.go` + "\t" + `
@@ -1,3 +1,4 @@ func x() {
 one
-two
+2
+diff --git a/evil b/evil
 three
@@ -10 +11,0 @@
-gone
diff --git a/old b/new
similarity index 90%
rename from old
rename to new
--- a/old
+++ b/new
@@ -5,2 +5,2 @@
-x
--- not/a/header
+y
+++ not/a/header
\ No newline at end of file
diff --git a/dead b/dead
deleted file mode 100644
--- a/dead
+++ /dev/null
@@ -1,2 +0,0 @@
-a
-b
diff --git "a/\303\274\t\"" "b/\303\274\t\""
new file mode 100644
--- /dev/null
+++ "b/\303\274\t\""
@@ -0,0 +1 @@
+z
diff --git a/bin b/bin
Binary files a/bin and b/bin differ
diff --git a/cut b/cut
--- a/cut
+++ b/cut
@@ -1,9 +1,9 @@
 half
diff --git a/last b/last
--- a/last
+++ b/last
@@ -1 +1 @@
-a
+b
`

func TestParseDiff(t *testing.T) {
	want := []review.File{
		{Path: "a b.go", Lines: []review.Range{{Start: 1, End: 4}, {Start: 11, End: 12}}, Added: 2, Removed: 2},
		{Path: "new", Lines: []review.Range{{Start: 5, End: 6}}, Added: 2, Removed: 2},
		{Path: "dead", Lines: []review.Range{{Start: 1, End: 2}}, Removed: 2},
		{Path: "ü\t\"", Lines: []review.Range{{Start: 1, End: 1}}, Added: 1},
		{Path: "bin"},
		{Path: "cut", Lines: []review.Range{{Start: 1, End: 9}}},
		{Path: "last", Lines: []review.Range{{Start: 1, End: 1}}, Added: 1, Removed: 1},
	}
	got := review.ParseDiff(sample)
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(review.File{}, "Text")); d != "" {
		t.Error("(-want +got)\n" + d)
	}
	var all strings.Builder
	for _, f := range got {
		all.WriteString(f.Text)
	}
	if all.String() != sample {
		t.Error("the texts together are not the diff")
	}
}

// TestParseOddDiffs reads diffs, or what looks like one: paths, and the ranges of lines.
func TestParseOddDiffs(t *testing.T) {
	const head, file = "diff --git a/x b/x\n", "--- a/x\n+++ b/x\n"
	for diff, want := range map[string]string{
		head + file + "@@ -3,2 +4,3 @@\n a\n-b\n+c\n+d\n-- \n2.43.0\n":                                              "x[{4 6}] +2-1", // git's signature after the last hunk
		head + file + "@@ -1 +1 @@\n-a\n+b\n+++ c\n--- d\n":                                                         "x[{1 1}] +1-1",
		head + file + "@@ -1,2 +1,2 @@\n-a\n\n+b\n":                                                                 "x[{1 2}] +1-1", // an empty line without its space
		"diff --git a/one b/two\n--- a/one\n+++ b/two\n@@ -1 +2 @@\n":                                               "two[{2 2}] +0-0",
		"diff --git a/one b/four\nrename from one\nrename to four\n":                                                "four[] +0-0",
		"diff --git a/one b/two\nrename from one\nrename to two\n":                                                  "two[] +0-0",
		"diff --git a/one b/four\n":                                                                                 "",
		"diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -5,2 +0,0 @@\n-a\n-b\n":           "x[{5 6}] +0-2",
		"diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n":               "x[{1 2}] +2-0",
		`diff --git "a/a\\b\101\"\n" "b/a\\b\101\"\n"` + "\n":                                                       "a\\bA\"\n[] +0-0",
		`diff --git "a/\777\a\t\" "b/\777\a\t\"` + "\n":                                                             "777\a\t\\[] +0-0",
		`diff --git "a/\377" "b/\377"` + "\n":                                                                       "\ufffd[] +0-0",
		head + file + "@@ -1\n@@ -1 x1 @@\n@@ x1 +1 @@\n@@ -a +1 @@\n@@ -1 +1,a @@\n@@ --1 +1 @@\n@@ -1 +1,-1 @@\n": "x[] +0-0",
		head + file + "@@ -1073741824 +1 @@\n":                                                                      "x[{1 1}] +0-0",
		head + file + "@@ -1073741825 +1 @@\n":                                                                      "x[] +0-0",
		head + file + "@@ -1 +1,1073741824 @@\n":                                                                    "x[{1 1073741824}] +0-0",
		head + file + "@@ -1 +1,1073741825 @@\n":                                                                    "x[] +0-0",
		"@@ -1 +1 @@\n-a\n+b\n--- a/x\n+++ b/x\n":                                                                   "",
	} {
		var got strings.Builder
		for _, f := range review.ParseDiff(diff) {
			fmt.Fprintf(&got, "%s%v +%d-%d", f.Path, f.Lines, f.Added, f.Removed)
		}
		if got.String() != want {
			t.Errorf("%s\ngot %q, want %q", diff, got.String(), want)
		}
	}
}

// TestAnswerIsBounded gives an answer with more than is kept.
func TestAnswerIsBounded(t *testing.T) {
	members := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"m%02d":1`, i)
		}
		return b.String()
	}
	long := strings.Repeat("x", 10_000)
	finding := `{"title":"` + long + `","body":"` + long + `","code_location":{"absolute_file_path":"` + long + `","line_range":{"start":1,"end":1073741824}}}`
	answer := func(findings int, extra string) string {
		return `{"findings":[` + strings.TrimSuffix(finding+","+strings.Repeat("{},", max(findings-1, 0)), ",") + `],"overall_correctness":"patch is correct","overall_explanation":"` + long + `"` + extra + `}`
	}
	for findings, want := range map[int]string{1000: "1000, 0 problems", 1001: "1000, 1 problems"} {
		r, err := review.Parse(answer(findings, ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%d, %d problems", len(r.Findings), len(r.Problems)); got != want || len(r.Problems) > 0 && !strings.HasPrefix(r.Problems[0], "1 findings are left out") {
			t.Errorf("%d findings: %s: %q", findings, got, r.Problems)
		}
		if f := r.Findings[0]; len(f.Title) != 400+3 || len(f.Body) != 8<<10+3 || len(f.Path) != 1<<10+3 || f.EndLine != 1<<30 || f.Error != "" || len(r.Verdict.Explanation) != 8<<10+3 {
			t.Errorf("%d bytes of the title, %d of the body, %d of the path, %d of the explanation; %s", len(f.Title), len(f.Body), len(f.Path), len(r.Verdict.Explanation), f.Error)
		}
	}
	for extra, want := range map[int]int{19: 19, 20: 20, 21: 20, 40: 20} {
		if r, err := review.Parse(answer(1, members(extra))); err != nil || len(r.Problems) != want {
			t.Errorf("%d members without a meaning: %d problems, %v", extra, len(r.Problems), err)
		}
	}
	for extra, want := range map[int]int{9: 9, 10: 10, 11: 10} {
		r, err := review.Parse(`{"findings":[{"title":"t","body":"b","code_location":{"absolute_file_path":"x","line_range":{"start":1,"end":1}}` + members(extra) + `}],"overall_correctness":"patch is correct","overall_explanation":"e"}`)
		if err != nil || strings.Count(r.Findings[0].Error, "no such member") != want {
			t.Errorf("%d members of a finding: %q, %v", extra, r.Findings[0].Error, err)
		}
	}
}

func TestParse(t *testing.T) {
	const place = `"code_location":{"absolute_file_path":"/r/a.go","line_range":{"start":2,"end":3}}`
	const verdict = `"overall_correctness":"patch is correct","overall_explanation":"Fine."`
	for _, tt := range []struct{ name, answer, want string }{
		{"nothing found", `{"findings":[],` + verdict + `}`, "correct"},
		{"in a fence", "```json\n{\"findings\":[]," + verdict + "}\n```\n", "correct"},
		{"whole", `{"findings":[{"title":"t","body":"b","priority":0,"confidence_score":0,` + place + `}],` + verdict + `}`, "/r/a.go:2-3 ; correct"},
		{"no priority", `{"findings":[{"title":"t","body":"b","priority":null,` + place + `}],` + verdict + `}`, "/r/a.go:2-3 ; correct"},
		{"priority too high", `{"findings":[{"title":"t","body":"b","priority":4,` + place + `}],` + verdict + `}`, "/r/a.go:2-3 priority: 4 is not 0, 1, 2 or 3; correct"},
		{"negative priority", `{"findings":[{"title":"t","body":"b","priority":-1,` + place + `}],` + verdict + `}`, "/r/a.go:2-3 priority: -1 is not 0, 1, 2 or 3; correct"},
		{"priority in words", `{"findings":[{"title":"t","body":"b","priority":"high",` + place + `}],` + verdict + `}`, `/r/a.go:2-3 priority: "high" is not 0, 1, 2 or 3; correct`},
		{"priority and a half", `{"findings":[{"title":"t","body":"b","priority":1.5,` + place + `}],` + verdict + `}`, "/r/a.go:2-3 priority: 1.5 is not 0, 1, 2 or 3; correct"},
		{"confidence above 1", `{"findings":[{"title":"t","body":"b","confidence_score":1.01,` + place + `}],` + verdict + `}`, "/r/a.go:2-3 confidence_score: 1.01 is not a number from 0 to 1; correct"},
		{"infinite confidence", `{"findings":[{"title":"t","body":"b","confidence_score":1e999,` + place + `}],` + verdict + `}`, "/r/a.go:2-3 confidence_score: 1e999 is not a number from 0 to 1; correct"},
		{"lines in reverse order", `{"findings":[{"title":"t","body":"b","code_location":{"absolute_file_path":"x","line_range":{"start":3,"end":2}}}],` + verdict + `}`, "x:0-0 line_range: it begins at 3 and ends at 2; correct"},
		{"line 0", `{"findings":[{"title":"t","body":"b","code_location":{"absolute_file_path":"x","line_range":{"start":0,"end":2}}}],` + verdict + `}`, "x:0-0 start: 0 is not a line number; correct"},
		{"line number too large", `{"findings":[{"title":"t","body":"b","code_location":{"absolute_file_path":"x","line_range":{"start":1,"end":99999999999999999999}}}],` + verdict + `}`, "x:0-0 end: 99999999999999999999 is not a line number; correct"},
		{"empty finding", `{"findings":[{}],` + verdict + `}`, ":0-0 title: missing; body: missing; code_location: missing; correct"},
		{"not an object", `{"findings":["x"],` + verdict + `}`, `:0-0 finding: "x" is not an object; correct`},
		{"duplicate member", `{"findings":[{"title":"t","title":"u"}],` + verdict + `}`, "not the JSON object"},
		{"another member", `{"findings":[{"title":"t","body":"b","fix":"x",` + place + `}],"more":1,` + verdict + `}`, `/r/a.go:2-3 "fix": no such member; correct; The answer has the member "more", which has no meaning.`},
		{"no verdict", `{"findings":[]}`, "none; About the verdict: overall_correctness: missing; overall_explanation: missing."},
		{"another verdict", `{"findings":[],"overall_correctness":"LGTM","overall_explanation":"e"}`, `none; About the verdict: overall_correctness: "LGTM" is neither "patch is correct" nor "patch is incorrect"; the reviewer says: e.`},
		{"no findings", `{` + verdict + `}`, "the answer has no findings"},
		{"findings that are not a list", `{"findings":{},` + verdict + `}`, "the answer's findings are not a list"},
		{"findings that are null", `{"findings":null,` + verdict + `}`, "the answer has no findings"},
		{"a title of another type", `{"findings":[{"title":1,"body":"b",` + place + `}],` + verdict + `}`, "/r/a.go:2-3 title: not a string; correct"},
		{"a place of another type", `{"findings":[{"title":"t","body":"b","code_location":"x"}],` + verdict + `}`, `:0-0 finding: "x" is not an object; correct`},
		{"no lines", `{"findings":[{"title":"t","body":"b","code_location":{"absolute_file_path":"x"}}],` + verdict + `}`, "x:0-0 line_range: missing; correct"},
		{"more in a place", `{"findings":[{"title":"t","body":"b","code_location":{"absolute_file_path":"x","line_range":{"start":1,"end":2,"a":1},"b":1}}],` + verdict + `}`, `x:1-2 "a": no such member; "b": no such member; correct`},
		{"line number too large by one", `{"findings":[{"title":"t","body":"b","code_location":{"absolute_file_path":"x","line_range":{"start":1,"end":1073741825}}}],` + verdict + `}`, "x:0-0 end: 1073741825 is not a line number; correct"},
		{"in a fence without a language", "```\n{\"findings\":[]," + verdict + "}\n```", "correct"},
		{"in a fence of another language", "```go\n{\"findings\":[]," + verdict + "}\n```", "not the JSON object"},
		{"in half a fence", "```json\n{\"findings\":[]," + verdict + "}", "not the JSON object"},
		{"in a fence of one line", "```{\"findings\":[]," + verdict + "}```", "not the JSON object"},
		{"a list", `[]`, "not the JSON object"},
		{"words", "It is fine.", "not the JSON object"},
		{"words before", `Here: {"findings":[],` + verdict + `}`, "not the JSON object"},
		{"words after", `{"findings":[],` + verdict + `} Done.`, "not the JSON object"},
		{"two answers", `{"findings":[]}{"findings":[]}`, "not the JSON object"},
		{"null", `null`, "not the JSON object"},
		{"nothing", " \n", "the reviewer did not answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := review.Parse(tt.answer)
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %s", err, tt.want)
				}
				return
			}
			var got []string
			for _, f := range r.Findings {
				got = append(got, fmt.Sprintf("%s:%d-%d %s", f.Path, f.StartLine, f.EndLine, f.Error))
			}
			switch {
			case r.Verdict == nil:
				got = append(got, "none")
			case r.Verdict.Correct:
				got = append(got, "correct")
			}
			if d := cmp.Diff(tt.want, strings.Join(append(got, r.Problems...), "; ")); d != "" {
				t.Error("(-want +got)\n" + d)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	root := t.TempDir()
	files := review.ParseDiff(sample)
	for _, tt := range []struct {
		path       string
		start, end int
		want       string // the path
		outside    bool
	}{
		{filepath.Join(root, "a b.go"), 4, 4, "a b.go", false},
		{"a b.go", 5, 10, "a b.go", true},
		{"./a b.go", 4, 10, "a b.go", false},
		{"x/../a b.go", 12, 400, "a b.go", false},
		{"a b.go", 5, 12, "a b.go", false}, // it begins before a hunk
		{"a b.go", 13, 400, "a b.go", true},
		{"a b.go", 0, 0, "a b.go", true},
		{"dead", 2, 2, "dead", false},
		{"old", 5, 5, "old", true},
		{"new", 6, 6, "new", false},
		{"bin", 1, 1, "bin", true},
		{"none", 1, 1, "none", true},
		{"../a b.go", 1, 1, "../a b.go", true},
		{filepath.Join(root+"x", "a b.go"), 1, 1, filepath.Join(root+"x", "a b.go"), true},
		{"", 1, 1, "", true},
	} {
		for _, whole := range []bool{true, false} {
			r := &review.Result{Findings: []protocol.Finding{{Path: tt.path, StartLine: tt.start, EndLine: tt.end}}}
			unknown := r.Check(files, !whole, "/elsewhere", root)
			f := r.Findings[0]
			if f.Path != tt.want || f.OutsideDiff != (tt.outside && unknown == 0) || unknown > 0 && whole {
				t.Errorf("%q %d-%d: %+v, %d unknown", tt.path, tt.start, tt.end, f, unknown)
			}
			if known := strings.Contains("a b.go dead new bin last", tt.want); !whole && tt.start > 0 && tt.want != "" && known == (unknown == 1) {
				t.Errorf("%q of a diff that was cut: %d unknown", tt.path, unknown)
			}
		}
	}
}

// TestPrompt checks that a prompt is bounded, names what it leaves out, and begins and
// ends with the rules.
func TestPrompt(t *testing.T) {
	big := review.File{Path: "big\n.go", Added: 7, Removed: 1, Text: strings.Repeat("+x\n", 30_000)}
	task := review.Task{Root: "/r", About: "one commit", Instructions: "locks", Files: []review.File{{Path: "a", Text: "A\n"}, big}, Cut: true}
	for range 1000 {
		task.Files = append(task.Files, review.File{Path: "small", Text: strings.Repeat("+y\n", 1000)})
	}
	p := task.Prompt()
	if len(p) > 250<<10 {
		t.Errorf("%d bytes", len(p))
	}
	for _, part := range []string{"Review a change", "The repository is /r. The change is one commit.\n", "adds:\nlocks\n", "\n<changes>\nA\n+y\n", `- "big\n.go" (+7 -1)` + "\n", "more changes than could be read", `"overall_correctness"`} {
		if !strings.Contains(p, part) {
			t.Errorf("it lacks %q", part)
		}
	}
	if n := strings.Count(p, "- \"small\""); n != 299 || task.Hidden() <= 300 || !strings.Contains(p, fmt.Sprintf("- and %d more\n", task.Hidden()-300)) {
		t.Errorf("%d named, %d hidden", n, task.Hidden())
	}
}

// TestText checks that line breaks and control characters are escaped or indented.
func TestText(t *testing.T) {
	r := &review.Result{
		Findings: []protocol.Finding{{Title: "a\nb\x1b[2J", Body: "one\n2. two", Path: "x\u202ey", StartLine: 1, EndLine: 2, Priority: new(2), OutsideDiff: true, Error: "e"}},
		Verdict:  &protocol.Verdict{Explanation: "No.", Confidence: new(0.5)},
		Problems: []string{"p"},
	}
	const want = "Verdict: the change is incorrect (confidence 0.5). No.\n\n1. [P2] a b\\x1b[2J — x\\u{202e}y:1-2 (outside of the diff) (faulty: e)\n   one\n   2. two\n\np"
	if d := cmp.Diff(want, r.Text()); d != "" {
		t.Error("(-want +got)\n" + d)
	}
	for want, r := range map[string]review.Result{
		"The review has no verdict.\n\nNo findings.":             {},
		"Verdict: the change is correct.\n\nNo findings.":        {Verdict: &protocol.Verdict{Correct: true}},
		"Verdict: the change is correct. Fine.\n\n1. [P1] t — x": {Verdict: &protocol.Verdict{Correct: true, Explanation: "Fine."}, Findings: []protocol.Finding{{Title: "[P1] t", Path: "x", Priority: new(1)}}},
	} {
		if got := r.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"findings":[{"title":"t","body":"b","priority":1,"confidence_score":0.5,"code_location":{"absolute_file_path":"/r/new","line_range":{"start":5,"end":6}}}],"overall_correctness":"patch is correct","overall_explanation":"e","overall_confidence_score":1}`, sample)
	f.Add("```json\n{\"findings\":[{}]}\n```", "diff --git a/x b/x\n@@ -1 +1 @@\n")
	f.Fuzz(func(t *testing.T, answer, diff string) {
		files := review.ParseDiff(diff)
		n := 0
		for _, f := range files {
			n += len(f.Text)
			for _, r := range f.Lines {
				if r.Start < 0 || r.End < r.Start {
					t.Errorf("lines %+v", r)
				}
			}
		}
		if n > len(diff) {
			t.Errorf("%d bytes of %d", n, len(diff))
		}
		r, err := review.Parse(answer)
		if err != nil {
			return
		}
		r.Check(files, false, "/r")
		for _, f := range r.Findings {
			if f.Priority != nil && (*f.Priority < 0 || *f.Priority > 3) || f.Confidence != nil && !(*f.Confidence >= 0 && *f.Confidence <= 1) || f.StartLine > f.EndLine || f.StartLine < 0 {
				t.Errorf("%+v", f)
			}
		}
		if text := r.Text(); utf8.ValidString(answer) && !utf8.ValidString(text) {
			t.Errorf("not UTF-8: %q", text)
		}
	})
}
